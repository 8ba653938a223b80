"""How a configured server is reached: what it is started with, and who it is told that we are."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib.util
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType

from agentd.core.errors import ConfigError
from agentd.core.redaction import Redactor
from agentd.core.secrets import Reference, find_secret
from agentd.interfaces.mcp.link import Dial, Link, ServerFault
from agentd.interfaces.mcp.logins import LoginDoor, LoginStore, LoginWay
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.program import CallOrder, environment, start_program

_GRACE = 1.0  # seconds


def is_installed() -> bool:
    """Whether the SDK is there; it is looked for, not loaded."""
    return importlib.util.find_spec("mcp") is not None


def check_installed(
    what: str, find: Callable[[str], object | None] = importlib.util.find_spec
) -> None:
    """Raise ConfigError where the SDK is missing, which `what` needs; it is looked for, not loaded."""
    if find("mcp") is None:
        raise ConfigError(
            f"{what} needs the extra `mcp`, which is not installed",
            cure="`make run EXTRAS=mcp` in the checkout, or `pip install 'agentd-daemon[mcp]'`",
        )


def source(server: McpServer) -> str:
    """A digest of what makes it the server that it is; secrets are not in it."""
    parts = [server.command, server.url, server.cwd, server.env, sorted(server.secrets)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def dial(
    name: str,
    server: McpServer,
    environ: Mapping[str, str],
    redactor: Redactor,
    grace: float = _GRACE,
    store: LoginStore | None = None,
) -> Dial:
    """What opens a session with it, by the login in `store` where one is needed. Secrets are looked up at each
    start, and never told in texts.

    Opening one raises ServerFault if a secret or a login is missing.
    """

    def secret(text: str, setting: str) -> str:
        try:
            return _secret(name, text, setting, environ, redactor)
        except ConfigError as error:
            raise ServerFault("no_secret", error.message, cure=error.cure) from None

    def order() -> CallOrder:
        own = environment(environ)
        folder = Path(server.cwd or own.get("HOME") or "/").expanduser()
        secrets = {name: secret(text, f"secrets.{name}") for name, text in server.secrets.items()}
        return CallOrder(server.command, folder, {**own, **server.env, **secrets}, grace)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Link]:
        if store is not None and (fault := store.fault()):
            raise fault
        sdk = await asyncio.to_thread(_load_sdk, _sdk)
        if server.command:
            async with start_program(order()) as program, sdk.to_program(program) as link:
                yield link
        elif store is not None:
            own = secret(server.client_secret, "client_secret") if server.client_secret else ""
            oauth = await asyncio.to_thread(_load_sdk, _oauth)
            places = oauth.LoginPlaces(server.url, server.login_hosts)
            authorized = partial(oauth.LoginAuth, store, own)
            carrier = oauth.GuardedTransport(places, server.timeout.total_seconds())
            async with sdk.to_address(server.url, {}, server.timeout, authorized, carrier) as link:
                yield link
        else:
            headers = {}
            if server.bearer:
                headers["Authorization"] = f"Bearer {secret(server.bearer, 'bearer')}"
            async with sdk.to_address(server.url, headers, server.timeout) as link:
                yield link

    return opened


def login_door(
    name: str,
    server: McpServer,
    environ: Mapping[str, str],
    redactor: Redactor,
    store: LoginStore,
) -> LoginDoor:
    """What logs in to it. Raises AgentdError where that does not work."""

    async def log_in(redirect_uri: str, way: LoginWay) -> None:
        secret = ""
        if server.client_secret:
            secret = _secret(name, server.client_secret, "client_secret", environ, redactor)
        oauth = await asyncio.to_thread(_load_sdk, _oauth)
        order = oauth.LoginOrder(
            server.url,
            redirect_uri,
            server.timeout.total_seconds(),
            server.client_id,
            secret,
            store.login.missing if store.login else "",
        )
        places = oauth.LoginPlaces(server.url, server.login_hosts)
        await store.keep(await oauth.log_in(order, places, way, store.expiry))

    return LoginDoor(store, log_in)


def _secret(
    name: str, text: str, setting: str, environ: Mapping[str, str], redactor: Redactor
) -> str:
    key = find_secret(Reference(text, f"[mcp.servers.{name}] {setting}"), environ).reveal()
    redactor.add(key)
    return key


def _load_sdk(load: Callable[[], ModuleType]) -> ModuleType:
    """The SDK, or what of it logs in; a second of loading, once. What it makes stays, and is not looked at for
    garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return load()
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _sdk() -> ModuleType:
    from agentd.interfaces.mcp import sdk

    return sdk


def _oauth() -> ModuleType:
    from agentd.interfaces.mcp import oauth

    return oauth
