"""A server on standard streams behind HTTP, as clients of that wire want it: for suites that speak
no other.

Run as a program: `python bridge.py COMMAND ARGUMENT…` prints its port. Each `initialize` starts the
command anew.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import uuid
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Json = dict[str, Any]


class Session:
    """One run of the command, and who waits for its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[Any, asyncio.Future[Json]] = {}

    async def listen(self) -> None:
        assert self._process.stdout
        async for line in self._process.stdout:
            frame = json.loads(line)
            waiting = self._waiting.pop(frame.get("id"), None)
            if waiting is not None and "method" not in frame:
                waiting.set_result(frame)

    async def say(self, frame: Json) -> Json | None:
        """The answer, if the frame asks for one."""
        assert self._process.stdin
        answer: asyncio.Future[Json] | None = None
        if "id" in frame and "method" in frame:
            answer = self._waiting[frame["id"]] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        await self._process.stdin.drain()
        return await answer if answer else None

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()


async def main(command: list[str]) -> None:
    sessions: dict[str, Session] = {}
    async with asyncio.TaskGroup() as group:

        async def post(request: Request) -> Response:
            frame = await request.json()
            key = request.headers.get("mcp-session-id", "")
            if frame.get("method") == "initialize":
                pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
                key = uuid.uuid4().hex
                session = sessions[key] = Session(
                    await asyncio.create_subprocess_exec(*command, **pipes)
                )
                group.create_task(session.listen())
            if key not in sessions:
                return Response(status_code=404)
            answer = await sessions[key].say(frame)
            headers = {"mcp-session-id": key}
            return JSONResponse(answer, headers=headers) if answer else Response(status_code=202)

        async def delete(request: Request) -> Response:
            session = sessions.pop(request.headers.get("mcp-session-id", ""), None)
            if session is not None:
                session.end()
            return Response(status_code=200)

        routes = [
            Route("/mcp", post, methods=["POST"]),
            Route("/mcp", delete, methods=["DELETE"]),
        ]
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="critical"))
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        await server.serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
