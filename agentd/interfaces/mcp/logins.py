"""Logins to MCP servers by OAuth: begun by a command, finished with the browser's answer, kept in
files only the owner can read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace

from agentd.core.errors import AgentdError, InvalidRequest, NotFound, ShuttingDown
from agentd.core.paths import ensure_private_dir, write_private
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.link import LOGIN_NEEDED, ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.server import ToolServer
from agentd.interfaces.mcp.waiting import within

log = structlog.get_logger()

LONGEST = 600.0  # seconds that a whole login may take, including what the user does
_SERVICE = 60.0  # seconds for each part that the service does without the user
_LARGEST = 256 * 1024  # bytes of the file of a login
_EARLY = 60.0  # seconds before its expiry at which a token is renewed
T = TypeVar("T")


class KeptLogin(Struct, frozen=True):
    """The result of a login. `access`, `refresh` and `client_secret` are secrets. `expires_at` is
    in seconds since 1970, None if the service did not say. `missing` are scopes that the service
    has asked for since the login. `ended` says why the login can no longer be used, "" while it
    can.
    """

    access: str
    refresh: str
    expires_at: float | None
    scope: str
    client_id: str
    client_secret: str
    client_method: str  # how the client proves itself at the token endpoint
    token_endpoint: str
    resource: str  # the `resource` parameter of token requests; "" if they have none
    missing: str = ""
    ended: str = ""

    def __repr__(self) -> str:
        return f"KeptLogin({self.token_endpoint})"


class LoginStore:
    """The stored login of one server. A file is used only for the URL and the client for which it
    was written, so that another address never gets the tokens.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        server: McpServer,
        redactor: Redactor,
        now: Callable[[], datetime],
    ) -> None:
        """Load the stored login and add its secrets to `redactor`. Without `folder` a login is kept
        in memory only.
        """
        self._file = folder / f"{name}.json" if folder else None
        self._name = name
        self._bound = hashlib.sha256(
            json.dumps([server.url, server.client_id, server.client_secret]).encode()
        ).hexdigest()
        self._redactor = redactor
        self._now = now
        self._changing = asyncio.Lock()
        self.login = self._read()
        self._hide(self.login)

    async def keep(self, login: KeptLogin) -> None:
        """Use the login from now on and write it to the file. Raises AgentdError if it cannot be
        written; it is used all the same until the daemon stops.
        """
        self._hide(login)
        self.login = login
        if self._file is None:
            return
        text = json.dumps({"bound": self._bound, **asdict(login)})
        if len(text) > _LARGEST:  # such a file would not be read again
            raise AgentdError(
                f"the login to {self._name} cannot be kept: the service gave {len(text)} bytes",
                cure="ask who runs the server; until `agentd restart` it is used",
            )
        try:
            async with self._changing:
                if self.login is login:  # the login may have been deleted meanwhile
                    await asyncio.to_thread(_write, self._file, text)
        except OSError as error:
            raise AgentdError(
                f"the login to {self._name} cannot be kept: {error.strerror}",
                cure="make room, or the state directory writable; then log in once more",
            ) from error

    async def renew(self, old: KeptLogin, login: KeptLogin) -> None:
        """Replace `old` by `login`. Does nothing if `old` was deleted or replaced meanwhile. A file
        that cannot be written is only logged; the next start then needs a login.
        """
        if self.login is not old:
            return
        try:
            await self.keep(login)
        except AgentdError:
            log.warning("mcp_login_not_kept", server=self._name)

    async def end(self, why: str) -> None:
        """Mark the login as ended for the reason `why`, and delete its tokens."""
        if self.login is not None:
            gone = replace(self.login, access="", refresh="", ended=why)
            await self.renew(self.login, gone)

    async def want(self, scope: str) -> None:
        """Record the scopes that the service asks for and the login lacks."""
        if self.login is not None:
            await self.renew(self.login, replace(self.login, missing=scope))

    async def forget(self) -> bool:
        """Delete the login and its file; returns whether there was one. Raises AgentdError if the
        file cannot be deleted.
        """
        had, self.login = self.login is not None, None
        if self._file is not None:
            try:
                async with self._changing:
                    await asyncio.to_thread(self._file.unlink, missing_ok=True)
            except OSError as error:
                raise AgentdError(
                    f"the login to {self._name} cannot be deleted: {error.strerror}",
                    cure=f"delete {self._file} by hand",
                ) from error
        return had

    def is_stale(self, login: KeptLogin) -> bool:
        """Return whether the access token expires within `_EARLY` seconds and can be renewed."""
        if not login.refresh or login.expires_at is None:
            return False
        return self._now().timestamp() + _EARLY >= login.expires_at

    def expiry(self, seconds: int | None) -> float | None:
        """Return the expiry, in seconds since 1970, of a token that is valid for `seconds` from
        now.
        """
        return None if seconds is None else self._now().timestamp() + seconds

    def fault(self) -> ServerFault | None:
        """Return the fault if there is no usable login, None if there is one."""
        if self.login is None:
            return self.needed("nobody has logged in to it")
        if self.login.ended:
            return self.needed(f"the login to it has ended: {self.login.ended}")
        return None

    def needed(self, why: str) -> ServerFault:
        """Return a LOGIN_NEEDED fault with `why` as its message and the login command as
        its cure.
        """
        return ServerFault(LOGIN_NEEDED, why, cure=f"`agentd mcp login {self._name}`")

    def _hide(self, login: KeptLogin | None) -> None:
        if login is not None:
            for secret in (login.access, login.refresh, login.client_secret):
                self._redactor.add(secret)

    def _read(self) -> KeptLogin | None:
        if self._file is None:
            return None
        try:
            return self._parsed(self._file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            log.warning("mcp_login_unreadable", server=self._name)
            return None

    def _parsed(self, file: Path) -> KeptLogin | None:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
                log.warning("mcp_login_readable_by_others", server=self._name)
                return None
            kept = json.loads(opened.read(_LARGEST))
        if kept.pop("bound", None) != self._bound:
            return None
        expires_at = kept.pop("expires_at")
        if not all(isinstance(text, str) for text in kept.values()):
            raise TypeError
        return KeptLogin(expires_at=None if expires_at is None else float(expires_at), **kept)


class LoginAnswer(Struct, frozen=True):
    """The parameters of the browser's redirect at the end of a login."""

    code: str
    state: str
    issuer: str = ""


class LoginWay:
    """A login under way: `url` is where the owner logs in, `answer` the browser's answer, `done`
    the end.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.url: asyncio.Future[str] = loop.create_future()
        self.answer: asyncio.Future[LoginAnswer] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def state(self) -> str:
        """The `state` parameter of the login's URL, which the answer has to repeat; "" before there
        is a URL.
        """
        return _state(self.url.result()) if self.url.done() and not self.url.exception() else ""

    def fail(self, error: AgentdError) -> None:
        """Raise `error` in whoever waits for `url` or `done`."""
        waits: tuple[asyncio.Future[Any], ...] = (self.url, self.done)
        for waited in waits:
            if not waited.done():
                waited.set_exception(error)
                waited.exception()  # nobody may be waiting


LogIn = Callable[[str, LoginWay], Awaitable[None]]
"""Logs in, given the redirect URI, and stores the login. Raises AgentdError."""


class LoginDoor(Struct, frozen=True):
    """How to log in to a server, and where its login is stored."""

    store: LoginStore
    log_in: LogIn


class Logins:
    """Logs in to MCP servers, one login for each server at a time: a new one cancels the one
    before.
    """

    def __init__(
        self, servers: Mapping[str, ToolServer], doors: Mapping[str, LoginDoor], clock: Clock
    ) -> None:
        self._servers = servers
        self._doors = doors
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._ways: dict[str, tuple[LoginWay, asyncio.Task[None]]] = {}

    def open(self, group: asyncio.TaskGroup) -> None:
        """Allow logins from now on; their tasks run in `group`."""
        self._group = group

    def close(self) -> None:
        """Cancel the logins under way, and begin no more."""
        self._group = None
        for _, task in self._ways.values():
            task.cancel()

    async def begin(self, name: str, redirect_uri: str) -> str:
        """Begin a login and return the URL at which the owner logs in. Raises AgentdError."""
        door = self._door(name)
        if self._group is None:
            raise ShuttingDown
        if name in self._ways:
            self._ways[name][1].cancel()
        way = LoginWay()
        self._ways[name] = way, self._group.create_task(self._run(name, door, way, redirect_uri))
        return await self._in_time(name, way, way.url)

    async def finish(self, name: str, code: str, state: str, issuer: str) -> tuple[int, str]:
        """Finish a login with the browser's answer and start the server anew; returns the number of
        its tools, and why the server failed, "" if it did not. Raises AgentdError if the login
        failed, InvalidRequest if the answer belongs to another login.
        """
        way = self._way(name, state)
        if not way.answer.done():
            way.answer.set_result(LoginAnswer(code, state, issuer))
        await self._in_time(name, way, way.done)
        server = self._servers[name]
        server.restart()
        with suppress(ServerFault):
            await server.refresh()
        return len(server.entries()), server.fault.message if server.fault else ""

    def give_up(self, name: str, state: str) -> None:
        """Cancel the login: the owner or the service refused it. Raises as `finish`."""
        self._way(name, state)
        self._ways[name][1].cancel()

    async def end(self, name: str) -> bool:
        """Delete the login and stop the server; returns whether there was a login. Raises
        AgentdError.
        """
        door = self._door(name)
        had = await door.store.forget()
        self._servers[name].restart(door.store.fault())
        return had

    async def _run(self, name: str, door: LoginDoor, way: LoginWay, redirect_uri: str) -> None:
        try:
            await within(self._clock, LONGEST, door.log_in(redirect_uri, way))
            way.done.set_result(None)
            log.info("mcp_logged_in", server=name)
        except TimeoutError:
            way.fail(AgentdError("the login was not finished in time", cure=_again(name)))
        except AgentdError as error:
            way.fail(error)
        except Exception:
            # An error of a library ends this login only.
            log.exception("mcp_login_crashed", server=name)
            way.fail(AgentdError("the login did not work", cure="`agentd logs` says why"))
        finally:
            way.fail(AgentdError("the login was given up", cure=_again(name)))
            if self._ways.get(name, (None,))[0] is way:
                del self._ways[name]

    async def _in_time(self, name: str, way: LoginWay, waited: asyncio.Future[T]) -> T:
        """Wait at most `_SERVICE` seconds for a step that the service does alone; cancels the login
        then and raises AgentdError.
        """
        try:
            return await within(self._clock, _SERVICE, asyncio.shield(waited))
        except TimeoutError:
            if name in self._ways and self._ways[name][0] is way:
                self._ways[name][1].cancel()
            why = f"the login did not go on within {_SERVICE:g} s"
            raise AgentdError(why, cure=_again(name)) from None

    def _door(self, name: str) -> LoginDoor:
        if name in self._doors:
            return self._doors[name]
        if name in self._servers and self._servers[name].settings.command:
            cure = "what it needs to know stands in its `env` and `secrets`"
            raise InvalidRequest(f"{name} is a program, which nobody logs in to", cure=cure)
        if name in self._servers:
            cure = f'set auth = "oauth" in [mcp.servers.{name}], then `agentd restart`'
            raise InvalidRequest(f"{name} is not one that is logged in to", cure=cure)
        known = ", ".join(self._doors) or "none"
        raise NotFound(f"there is no server {name[:100]!r}", cure=f"those with a login: {known}")

    def _way(self, name: str, state: str) -> LoginWay:
        self._door(name)
        way = self._ways[name][0] if name in self._ways else None
        if way is None:
            raise InvalidRequest(f"no login to {name} is under way", cure=_again(name))
        if not way.state or not hmac.compare_digest(way.state.encode(), state.encode()):
            raise InvalidRequest("that is the answer to another login", cure=_again(name))
        return way


def _again(name: str) -> str:
    return f"`agentd mcp login {name}`"


def _state(url: str) -> str:
    return (parse_qs(urlsplit(url).query).get("state") or [""])[-1]


def _write(file: Path, text: str) -> None:
    ensure_private_dir(file.parent)
    write_private(file, text)
