#!/usr/bin/env python3
"""service_address.py ADDRESS PORT TO - what kube-proxy does for one service: connections to ADDRESS:PORT, which this machine
takes as its own until it is told to end, go on to 127.0.0.1:TO. Needs root. Prints "ready".
"""
import signal
import socket
import subprocess
import sys
import threading


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main(address, port, to):
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=False, capture_output=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with socket.create_server((address, port)) as server:
            print("ready", flush=True)
            while True:
                client, _ = server.accept()
                try:
                    other = socket.create_connection(("127.0.0.1", to))
                except OSError:
                    client.close()
                    continue
                for pair in ((client, other), (other, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()
    finally:
        subprocess.run(["ip", "address", "del", f"{address}/32", "dev", "lo"], check=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
