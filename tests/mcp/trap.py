"""A server that wants a login which leads astray, as its argument says. Prints its port.

The second argument is an address that it sends the client to.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

HOW, PLACE = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
listening = socket.create_server(("127.0.0.1", 0))
OWN = f"http://127.0.0.1:{listening.getsockname()[1]}"
seen: list[str] = []


async def tools(request: Request) -> Response:
    if HOW == "late" and (await request.json())["method"] == "initialize":
        return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}})
    where = PLACE if HOW == "resource" else f"{OWN}/.well-known/oauth-protected-resource/mcp"
    head = f'Bearer resource_metadata="{where}"'
    return Response(status_code=401, headers={"www-authenticate": head})


async def resource(request: Request) -> Response:
    server = PLACE if HOW == "server" else OWN
    return JSONResponse({"resource": f"{OWN}/mcp", "authorization_servers": [server]})


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 65536


async def metadata(request: Request) -> Response:
    if HOW == "hang":
        await asyncio.Event().wait()
    if HOW == "endless":
        return StreamingResponse(endless(), media_type="application/json")
    if HOW == "moved":
        return Response(status_code=307, headers={"location": PLACE})
    if HOW == "deep":
        return Response(b"[" * 100_000, media_type="application/json")
    named = {name: f"{OWN}/{name}" for name in ("authorize", "token", "register")}
    if HOW in named:
        named[HOW] = PLACE
    return JSONResponse(
        {
            "issuer": OWN,
            "authorization_endpoint": named["authorize"],
            "token_endpoint": named["token"],
            "registration_endpoint": named["register"],
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


async def register(request: Request) -> Response:
    seen.append("register")
    said = await request.json()
    return JSONResponse({**said, "client_id": "c1"}, status_code=201)


async def token(request: Request) -> Response:
    seen.append("token")
    if HOW == "broken":
        said = {"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}
        return Response(json.dumps(said), media_type="application/json")
    return Response("x" * 5000, status_code=400)


async def told(request: Request) -> Response:
    return JSONResponse(seen)


app = Starlette(
    routes=[
        Route("/mcp", tools, methods=["POST"]),
        Route("/.well-known/oauth-protected-resource/mcp", resource),
        Route("/.well-known/oauth-authorization-server", metadata),
        Route("/register", register, methods=["POST"]),
        Route("/token", token, methods=["POST"]),
        Route("/seen", told),
    ]
)

if __name__ == "__main__":
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
