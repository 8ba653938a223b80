"""A daemon that says what it was told to, over a real Unix socket, from threads of its own."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import agentd
from agentd.interfaces.client.connection import reachable

STATUS = {"version": agentd.__version__, "pid": os.getpid(), "uptime_s": 3}


class Refusal(Exception):
    """An error to be answered."""

    def __init__(self, number: int, message: str, **data: str) -> None:
        super().__init__(message)
        self.frame = {"code": number, "message": message, "data": data}


class Hangup(Exception):
    """The connection breaks."""


class Wire:
    """One client's connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = connection.makefile("rb")

    def send(self, *frames: dict[str, Any]) -> None:
        """Send frames that the client reads at once."""
        lines = [json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n" for frame in frames]
        self.connection.sendall(b"".join(lines))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send({"method": method, "params": params})

    def words(self, session: str, text: str, **meta: Any) -> None:
        update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk"}
        update["content"] = {"type": "text", "text": text}
        self.notify("session/update", {"sessionId": session, "update": update, "_meta": meta})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.send({"id": "q1", "method": method, "params": params})
        return json.loads(self.lines.readline())["result"]

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the client was first
            self.connection.shutdown(socket.SHUT_RDWR)


Method = Callable[[dict[str, Any], Wire], Any]


class ScriptedDaemon:
    """Answers each method by the function in `methods`; keeps what was called."""

    def __init__(self, path: Path, **methods: Method) -> None:
        self.path = path
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.methods: dict[str, Method] = {
            "initialize": lambda params, wire: {"protocolVersion": 1},
            "session/resume": lambda params, wire: {},
            "_agentd/status": lambda params, wire: STATUS,
        }
        self._wires: list[Wire] = []
        self._threads: list[threading.Thread] = []

    def on(self, method: str, answer: Method) -> None:
        self.methods[method] = answer

    def params_of(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        with reachable(self.path) as short:
            self._listener.bind(short)
        self._listener.listen()
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()  # from here on nobody is let in
        for wire in self._wires:
            wire.close()
        for thread in self._threads:
            thread.join()
        self.path.unlink()

    def _start(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            wire = Wire(connection)
            self._wires.append(wire)
            self._start(self._serve, wire)

    def _serve(self, wire: Wire) -> None:
        try:
            for line in wire.lines:
                self._answer(json.loads(line), wire)
        except (Hangup, OSError):
            wire.close()
        finally:
            wire.lines.close()
            wire.connection.close()

    def _answer(self, frame: dict[str, Any], wire: Wire) -> None:
        if "method" not in frame:
            return  # the answer to a question that was taken back meanwhile
        method, params = frame["method"], frame["params"]
        self.calls.append((method, params))
        if "id" not in frame:
            if method in self.methods:
                self.methods[method](params, wire)
            return
        try:
            if method not in self.methods:
                raise Refusal(-32601, f"no such method: {method}", code="invalid")
            wire.send({"id": frame["id"], "result": self.methods[method](params, wire)})
        except Refusal as refusal:
            wire.send({"id": frame["id"], "error": refusal.frame})
