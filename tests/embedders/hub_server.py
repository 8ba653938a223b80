"""A model hub on the loopback, with one model, for a process that fetches from it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "someone/tiny"
COMMIT = "c0ffee" + "0" * 34
FILES = {
    "config.json": b'{"hidden_size": 4}',
    "model.safetensors": b"weights" * 1000,
    "pytorch_model.bin": b"a pickle that nobody should load",
    "onnx/model.onnx": b"another form",
    "README.md": b"words",
}


class Hub(ThreadingHTTPServer):
    """Counts what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fetched: list[str] = []
        self.headers: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.server.headers.append(str(self.headers))
        path = self.path.partition("?")[0]
        extra = {}
        if path.startswith(f"/api/models/{NAME}/tree/"):
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": _digest(data)}
                for name, data in FILES.items()
            ]
            body = json.dumps(entries).encode()
        elif path.startswith(f"/api/models/{NAME}"):
            files = [{"rfilename": name, "size": len(data)} for name, data in FILES.items()]
            about = {"id": NAME, "sha": COMMIT, "siblings": files, "tags": [], "private": False}
            body = json.dumps(about).encode()
        elif (name := path.partition(f"/{NAME}/resolve/{COMMIT}/")[2]) in FILES:
            body = FILES[name]
            extra = {"ETag": f'"{_digest(body)}"', "X-Repo-Commit": COMMIT}
            if with_body:
                self.server.fetched.append(name)
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        for key, value in extra.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _digest(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextmanager
def a_hub() -> Iterator[tuple[Hub, str]]:
    """The hub, and its address."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{hub.server_port}"
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
