#!/usr/bin/env python3
"""stores.py TEST_PROGRAM FOLDER - the tests [store] of TEST_PROGRAM against s3rver, a store in Node.js.

s3rver comes from npm into FOLDER, once. Without npm, or where it gets nothing, the test is SKIPPED (77). s3rver does not look at
signatures: a door in front of it does, by AWS Signature Version 4 as its documentation has it, beside libcurl's implementation.
"""
import datetime
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parent.parent / "data/samples"
VERSION = "3.7.1"
KEY, SECRET, REGION = "S3RVER", "S3RVER", "us-east-1"


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(77)


def install(folder):
    program = folder / "node_modules/s3rver/bin/s3rver.js"
    if program.is_file():
        return program
    if not shutil.which("npm") or not shutil.which("node"):
        skip("npm is not installed: s3rver, the test's store, comes from it")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}\n")
    words = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"s3rver@{VERSION}"]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        skip("npm got no s3rver within 240 s")
    if done.returncode != 0 or not program.is_file():
        skip(f"npm got no s3rver: {(done.stderr or done.stdout).strip()[:200]}")
    return program


def signature(method, place, query, headers, names, digest):
    """Of a request with these headers, of which `names` are signed, and a body of this digest."""
    stamp = headers["x-amz-date"]
    pairs = sorted(part if "=" in part else part + "=" for part in query.split("&") if part)
    canonical = "\n".join([method, place, "&".join(pairs)] + [f"{k}:{headers[k].strip()}" for k in names] + ["", ";".join(names), digest])
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    said = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={';'.join(names)}, Signature={said}"


def signed_put(port, path, body):
    """PUT of `path`, which is not encoded yet."""
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    place = urllib.parse.quote(path, safe="/-_.~")
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": f"127.0.0.1:{port}", "x-amz-content-sha256": digest, "x-amz-date": stamp}
    headers["authorization"] = signature("PUT", place, "", headers, sorted(headers), digest)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", place, body, headers)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status >= 300:
        sys.exit(f"PUT {path}: {answer.status} {said[:300]!r}")


def door_to(port):
    """A server that passes on to `port` what is signed as it should be, and counts the rest."""

    class Door(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        passed = 0

        def do_GET(self):  # pylint: disable=invalid-name
            headers = {name.lower(): value for name, value in self.headers.items()}
            place, _, query = self.path.partition("?")
            given = headers.get("authorization", "")
            names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
            digest = headers.get("x-amz-content-sha256", "")
            needed = {"host", "x-amz-date", "x-amz-content-sha256"} | ({"x-amz-security-token"} & headers.keys())
            signed = needed <= set(names) and all(name in headers for name in names)
            wanted = signature("GET", place, query, headers, names, digest) if signed else ""
            if digest != hashlib.sha256(b"").hexdigest() or "".join(given.split()) != "".join(wanted.split()):
                return self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code><Message>Not signed by the key.</Message></Error>", {})
            Door.passed += 1
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", self.path, headers={k: v for k, v in headers.items() if k != "connection"})
            answer = connection.getresponse()
            return self.answer(answer.status, answer.read(), {k: v for k, v in answer.getheaders() if k.lower() == "content-range"})

        def answer(self, status, body, headers):
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, Door


def write_files(folder):
    """One data set of each format."""
    def copy(name, place):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / name, folder / place)

    for name, place in (("photo.jpg", "a/1.jpg"), ("photo.png", "b/1 & 2.png"), ("grey.jpg", "c/\u00fc.jpg")):
        copy(name, f"images/{place}")
    (folder / "shards").mkdir()
    for shard, keys in enumerate((("000", "001"), ("002",))):
        with tarfile.open(folder / f"shards/set-{shard}.tar", "w") as archive:
            for key in keys:
                (folder / "class").write_text(str(int(key) % 3))
                archive.add(SAMPLES / "photo.jpg", f"{key}.jpg")
                archive.add(folder / "class", f"{key}.cls")
    (folder / "class").unlink()
    (folder / "records").mkdir()
    for name in ("train-00000-of-00001", "validation-00000-of-00001"):
        (folder / "records" / name).write_bytes((folder / ".records").read_bytes())
    (folder / ".records").unlink()
    copy("tokens-u2.npy", "tokens/tokens-u2.npy")
    tokens = (SAMPLES / "tokens-u2.npy").read_bytes()[128:]
    (folder / "tokens/raw.bin").write_bytes(tokens)
    (folder / "tokens/corpus.bin").write_bytes(tokens)
    count = len(tokens) // 2
    (folder / "tokens/corpus.idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 2, 3) + struct.pack("<2i", 5, count - 5) + struct.pack("<2q", 0, 10)
        + struct.pack("<3q", 0, 1, 2))


def wait_for(port, server):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"s3rver ended with code {server.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("s3rver does not listen")


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    s3rver = install(folder)
    port = random.randint(20000, 32000)
    with tempfile.TemporaryDirectory(prefix="reckon-store-") as scratch:
        files, data = pathlib.Path(scratch) / "files", pathlib.Path(scratch) / "store"
        files.mkdir()
        data.mkdir()
        environment = dict(os.environ, RECKON_TEST_FILES=str(files))
        # Records have checksums that Python has not: the test program writes them.
        subprocess.run([program, "[.records]"], env=environment, check=True, stdout=subprocess.DEVNULL)
        write_files(files)
        words = ["node", str(s3rver), "-d", str(data), "-a", "127.0.0.1", "-p", str(port), "-s", "--configure-bucket", "data"]
        # Its tokens for the next page are encrypted as OpenSSL 3 does no more by itself.
        legacy = dict(os.environ, NODE_OPTIONS="--openssl-legacy-provider")
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=legacy) as server:
            try:
                wait_for(port, server)
                for path in sorted(files.rglob("*")):
                    if path.is_file():
                        signed_put(port, f"/data/set one/{path.relative_to(files)}", path.read_bytes())
                for k in range(1203):
                    signed_put(port, f"/data/many/{k:04} & 'a'.bin", b"three")
                door, counted = door_to(port)
                environment.update(RECKON_TEST_STORE=f"http://127.0.0.1:{door.server_port}", AWS_ACCESS_KEY_ID=KEY,
                                   AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN="a token", AWS_REGION=REGION)
                code = subprocess.run([program, "[.store]"], env=environment, check=False).returncode
                print(f"{counted.passed} requests were signed as they should be")
                door.shutdown()
                return code if counted.passed > 0 else 1
            finally:
                server.terminate()


if __name__ == "__main__":
    sys.exit(main())
