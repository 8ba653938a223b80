"""A server over HTTP that answers a call with a flood of events, as its argument says. Prints its
port.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

HOW = sys.argv[1]


def event(frame: dict[str, Any]) -> bytes:
    return f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **frame})}\n\n".encode()


def noise(size: int) -> dict[str, Any]:
    return {"method": "notifications/message", "params": {"level": "info", "data": "x" * size}}


async def flood() -> AsyncIterator[bytes]:
    while HOW == "events":
        yield event(noise(10))
    while HOW == "bytes":
        yield event(noise(1_000_000))
    yield b"event: message\ndata: "
    while HOW == "endless":
        yield b"x" * 65536


async def answered(request: Request) -> Response:
    frame = await request.json()
    if "id" not in frame:
        return Response(status_code=202)
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "flooding", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
    }
    if frame["method"] in results:
        return JSONResponse(
            {"jsonrpc": "2.0", "id": frame["id"], "result": results[frame["method"]]}
        )
    if HOW == "packed":
        body = gzip.compress(b" " * 100_000_000)
        return Response(body, headers={"content-encoding": "gzip"}, media_type="application/json")
    if HOW == "announced":
        return Response(b" " * 9_000_000, media_type="application/json")
    if HOW == "cut":
        return Response(b"{", headers={"content-length": "100"}, media_type="application/json")
    if HOW == "large":

        async def parts() -> AsyncIterator[bytes]:
            while True:
                yield b" " * 65536

        return StreamingResponse(parts(), media_type="application/json")
    return StreamingResponse(flood(), media_type="text/event-stream")


app = Starlette(routes=[Route("/mcp", answered, methods=["POST"])])
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
