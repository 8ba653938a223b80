"""`agentd mcp`: serve the memory to other agents over the Model Context Protocol on standard
streams. Its subcommands log in to MCP servers; during a login a local port receives the browser's
redirect.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.declared import add_all
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.report import note, reporting, show
from agentd.core.errors import AgentdError
from agentd.interfaces.client.connection import connect
from agentd.interfaces.commands.plain import visible
from agentd.interfaces.commands.tool_servers import LOGINS, login_text
from agentd.interfaces.mcp.reaching import check_installed


def _login(
    given: dict[str, Any],
    *,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            help="The port that the browser comes back to; 0 is any that is free.",
        ),
    ] = 0,
    as_json: bool,
) -> None:
    def tell(url: str, host: str) -> None:
        note(visible(f"Log in at {host}: open this address in a browser of this machine."))
        note(visible(url))

    with reporting(as_json=as_json):
        show(
            asyncio.run(log_in(sockets(), given["server"], port, tell)), login_text, as_json=as_json
        )


app = CommandGroup(
    "Let other agents use the memory: a server of the Model Context Protocol on standard streams."
    " Below it: logins to servers of tools."
)
add_all(app, LOGINS, {"login": _login})


@app.callback(invoke_without_command=True, no_args_is_help=False)
def mcp(context: typer.Context) -> None:
    """Serve, unless one of the commands below is meant."""
    if context.invoked_subcommand is not None:
        return
    with reporting():
        check_installed("agentd mcp")
        from agentd.app.cli.memory_server import serve

        asyncio.run(serve(sockets()))


_WAIT = 300.0  # seconds that the user has to log in
_SLOW = 5.0  # seconds that the browser has for one request
_CALL = 180.0  # seconds for one answer of the daemon
_LONGEST = 16 * 1024  # bytes of a request
_PAGES = {
    200: "agentd has got the answer. You can close this page; the terminal says what came of it.",
    400: "This is not the answer that agentd waits for.",
}


async def log_in(
    sockets: Sequence[Path], server: str, port: int, tell: Callable[[str, str], None]
) -> dict[str, Any]:
    """Log in to an MCP server and return the daemon's result. `tell` gets the URL to open in a
    browser, and its host. `port` receives the redirect; 0 is any free port. Raises AgentdError.
    """
    async with connect(sockets) as daemon, _landing(port) as landing:
        begun = await daemon.call(
            "_agentd/mcp/login", {"server": server, "port": landing.port}, within=_CALL
        )
        landing.state = (parse_qs(urlsplit(begun["url"]).query).get("state") or [""])[-1]
        tell(begun["url"], begun["host"])
        try:
            async with asyncio.timeout(_WAIT):
                arrived = await landing.arrived
        except TimeoutError:
            cure = f"`agentd mcp login {server}` once more"
            raise AgentdError(f"nobody has logged in within {_WAIT:g} s", cure=cure) from None
        brought = {key: arrived[key] for key in ("state", "code", "iss", "error") if key in arrived}
        asked = {"server": server, **brought}
        return dict(await daemon.call("_agentd/mcp/redirected", asked, within=_CALL))


class _RedirectEndpoint:
    """The HTTP endpoint of the OAuth redirect. `arrived` gets the query of the first request whose
    `state` is that of the login; any other request is answered with 400.
    """

    def __init__(self) -> None:
        self.port = 0
        self.state = ""
        self.arrived: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(_SLOW):
                head = await reader.readuntil(b"\r\n\r\n")
                status = 200 if self._takes(head) else 400
                page = f"<!doctype html><title>agentd</title><p>{_PAGES[status]}\n".encode()
                writer.write(
                    f"HTTP/1.1 {status} {'OK' if status == 200 else 'Bad Request'}\r\n"
                    "Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
                    "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
                    f"Content-Length: {len(page)}\r\n\r\n".encode()
                    + page
                )
                await writer.drain()
        writer.close()

    def _takes(self, head: bytes) -> bool:
        method, _, rest = head.partition(b" ")
        target = rest.partition(b" ")[0].decode("ascii", "replace")
        try:
            parts = urlsplit(target)
        except ValueError:  # brackets without an IPv6 address
            return False
        if method != b"GET" or parts.path != "/callback" or not self.state:
            return False
        brought = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        if not hmac.compare_digest(brought.get("state", "").encode(), self.state.encode()):
            return False
        if not self.arrived.done():
            self.arrived.set_result(brought)
        return True


@asynccontextmanager
async def _landing(port: int) -> AsyncIterator[_RedirectEndpoint]:
    landing = _RedirectEndpoint()
    try:
        server = await asyncio.start_server(landing.serve, "127.0.0.1", port, limit=_LONGEST)
    except OSError as error:
        raise AgentdError(
            f"port {port} cannot be listened to: {error.strerror}", cure="another --port, or none"
        ) from error
    landing.port = server.sockets[0].getsockname()[1]
    try:
        yield landing
    finally:
        server.close()
