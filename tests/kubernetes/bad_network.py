#!/usr/bin/env python3
"""bad_network.py SERVER_PORT CUT_FILE PORT_FILE - a way to a server on this machine that can be cut.

Listens on a free port, writes it into PORT_FILE, and passes connections on. While CUT_FILE exists not a byte
passes and nobody is told; connections from before the cut stay dead behind it, as they do where a network forgets them.
"""
import asyncio
import os
import pathlib
import sys

LOOK_EVERY = 0.1  # seconds
PART = 65536


def is_cut(cut):
    return os.path.exists(cut)


async def forward(reader, writer, cut):
    while data := await reader.read(PART):
        if is_cut(cut):
            await asyncio.Event().wait()  # for ever
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(reader, writer, port, cut):
    while is_cut(cut):
        await asyncio.sleep(LOOK_EVERY)
    there, back = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(forward(reader, back, cut), forward(there, writer, cut), return_exceptions=True)


async def main():
    port, cut, port_file = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    server = await asyncio.start_server(lambda r, w: serve(r, w, port, cut), "127.0.0.1", 0)
    half = port_file.with_suffix(".half")
    half.write_text(str(server.sockets[0].getsockname()[1]))
    half.rename(port_file)
    await server.serve_forever()


asyncio.run(main())
