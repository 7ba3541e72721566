"""A server that holds an archive, and comments as the APIs of GitHub and GitLab do."""
import http.server
import json
import re
import threading
from urllib.parse import parse_qs, urlparse


class MockApi:
    def __init__(self, archive, token="secret", may_write=True):
        self.archive, self.token, self.may_write = archive, token, may_write
        self.comments = []  # {"id", "body"}
        self.calls = []     # ("POST", path)
        self.archive_token = None
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def answer(self, status, value):
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle_any(self):
                url = urlparse(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                sent = self.rfile.read(length)
                given = self.headers.get("PRIVATE-TOKEN") or (self.headers.get("Authorization") or "")[7:]
                if url.path == "/reckon.tar.xz":
                    if api.archive_token is not None and given != api.archive_token:
                        return self.answer(404, {"message": "Not Found"})
                    return self.answer(200, api.archive)
                api.calls.append((self.command, url.path))
                if given != api.token:
                    return self.answer(401, {"message": "Bad credentials"})
                if self.command != "GET" and not api.may_write:
                    return self.answer(403, {"message": "Resource not accessible by integration"})
                listed = re.fullmatch(r".*/(issues/7/comments|merge_requests/7/notes)", url.path)
                one = re.fullmatch(r".*/(issues/comments|merge_requests/7/notes)/(\d+)", url.path)
                if listed and self.command == "GET":
                    asked = parse_qs(url.query)
                    size, page = int(asked["per_page"][0]), int(asked["page"][0])
                    return self.answer(200, api.comments[(page - 1) * size:page * size])
                if listed and self.command == "POST":
                    made = {"id": 1000 + len(api.comments), "body": json.loads(sent)["body"]}
                    api.comments.append(made)
                    return self.answer(201, made)
                if one and self.command in ("PATCH", "PUT"):
                    found = [c for c in api.comments if c["id"] == int(one[2])]
                    if found:
                        found[0]["body"] = json.loads(sent)["body"]
                        return self.answer(200, found[0])
                return self.answer(404, {"message": "Not Found"})

            do_GET = do_POST = do_PATCH = do_PUT = handle_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def written(self):
        return [method for method, _ in self.calls if method != "GET"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
