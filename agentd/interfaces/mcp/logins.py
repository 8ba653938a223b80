"""Logins to servers: begun by a command, finished by what the browser brings back, kept for the owner alone."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import structlog

from agentd.core.errors import AgentdError, InvalidRequest, NotFound, ShuttingDown
from agentd.core.paths import ensure_private_dir, write_private
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.link import LOGIN_NEEDED, ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.server import RecallServer
from agentd.interfaces.mcp.waiting import within

log = structlog.get_logger()

LONGEST = 600.0  # seconds that a login may take, the user's part included
_SERVICE = 60.0  # seconds for what the service does without the user
_LARGEST = 256 * 1024  # bytes of the file of a login
_EARLY = 60.0  # seconds before its end in which a token is renewed
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """What a login has given. `access` and `refresh` are secrets, as is `client_secret`; `expires_at` counts
    in seconds since 1970, None where the service did not say. `missing` are rights that the service has
    asked for since; `ended` says why it is of no use any more, "" while it is.
    """

    access: str
    refresh: str
    expires_at: float | None
    scope: str
    client_id: str
    client_secret: str
    client_method: str  # how the client proves itself at the token endpoint
    token_endpoint: str
    resource: str  # what the tokens are for; "" where that is not to be said
    missing: str = ""
    ended: str = ""

    def __repr__(self) -> str:
        return f"KeptLogin({self.token_endpoint})"


class LoginStore:
    """The login of one server. It is bound to the address and the client that are configured: another
    address never gets it.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        server: McpServer,
        redactor: Redactor,
        now: Callable[[], datetime],
    ) -> None:
        """Without a folder it is kept in memory alone. What a file holds is hidden from all texts from now
        on.
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
        """Take it into use, durably. Raises AgentdError where it cannot be written; it is in use then all the
        same.
        """
        self._hide(login)
        self.login = login
        if self._file is None:
            return
        text = json.dumps({"bound": self._bound, **asdict(login)})
        if len(text) > _LARGEST:  # it would not be read again
            raise AgentdError(
                f"the login to {self._name} cannot be kept: the service gave {len(text)} bytes",
                cure="ask who runs the server; until `agentd restart` it is used",
            )
        try:
            async with self._changing:
                if self.login is login:  # it may have been deleted meanwhile
                    await asyncio.to_thread(_write, self._file, text)
        except OSError as error:
            raise AgentdError(
                f"the login to {self._name} cannot be kept: {error.strerror}",
                cure="make room, or the state directory writable; then log in once more",
            ) from error

    async def renew(self, old: KeptLogin, login: KeptLogin) -> None:
        """Take `login` into use in place of `old`, durably if that is possible: else the next start needs a
        login. One that was deleted or replaced meanwhile stays so.
        """
        if self.login is not old:
            return
        try:
            await self.keep(login)
        except AgentdError:
            log.warning("mcp_login_not_kept", server=self._name)

    async def end(self, why: str) -> None:
        """It is of no use any more. The tokens are forgotten."""
        if self.login is not None:
            gone = replace(self.login, access="", refresh="", ended=why)
            await self.renew(self.login, gone)

    async def want(self, scope: str) -> None:
        """The service asks for rights that it does not have."""
        if self.login is not None:
            await self.renew(self.login, replace(self.login, missing=scope))

    async def forget(self) -> bool:
        """Whether there was one; there is none now. Raises AgentdError where the file stays."""
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
        """Whether it should be renewed before it is used."""
        if not login.refresh or login.expires_at is None:
            return False
        return self._now().timestamp() + _EARLY >= login.expires_at

    def expiry(self, seconds: int | None) -> float | None:
        """When a token expires that is good for so many seconds from now."""
        return None if seconds is None else self._now().timestamp() + seconds

    def fault(self) -> ServerFault | None:
        """Why nobody can be asked with it; None where it can be tried."""
        if self.login is None:
            return self.needed("nobody has logged in to it")
        if self.login.ended:
            return self.needed(f"the login to it has ended: {self.login.ended}")
        return None

    def needed(self, why: str) -> ServerFault:
        """A fault that a login cures."""
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


@dataclass(frozen=True, slots=True)
class LoginAnswer:
    """What a browser brings back."""

    code: str
    state: str
    issuer: str = ""


class LoginWay:
    """One login under way: the address to go to, and what comes back from there."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.url: asyncio.Future[str] = loop.create_future()
        self.answer: asyncio.Future[LoginAnswer] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def state(self) -> str:
        """What the answer has to bring back, which nobody else knows."""
        return _state(self.url.result()) if self.url.done() and not self.url.exception() else ""

    def fail(self, error: AgentdError) -> None:
        """Tell whoever waits."""
        waits: tuple[asyncio.Future[Any], ...] = (self.url, self.done)
        for waited in waits:
            if not waited.done():
                waited.set_exception(error)
                waited.exception()  # nobody may be waiting


LogIn = Callable[[str, LoginWay], Awaitable[None]]
"""Logs in and keeps what that gives, with an address to come back to. Raises AgentdError."""


@dataclass(frozen=True, slots=True)
class LoginDoor:
    """How a server is logged in to, and where the login is kept."""

    store: LoginStore
    log_in: LogIn


class Logins:
    """Logs in to servers, one login for each at a time: one that is begun takes the place of the one before."""

    def __init__(
        self, servers: Mapping[str, RecallServer], doors: Mapping[str, LoginDoor], clock: Clock
    ) -> None:
        self._servers = servers
        self._doors = doors
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._ways: dict[str, tuple[LoginWay, asyncio.Task[None]]] = {}

    def open(self, group: asyncio.TaskGroup) -> None:
        """Let logins be begun, as tasks of this group."""
        self._group = group

    def close(self) -> None:
        """Begin no more, and give up what is under way."""
        self._group = None
        for _, task in self._ways.values():
            task.cancel()

    async def begin(self, name: str, redirect_uri: str) -> str:
        """The address at which the owner logs in. Raises AgentdError."""
        door = self._door(name)
        if self._group is None:
            raise ShuttingDown
        if name in self._ways:
            self._ways[name][1].cancel()
        way = LoginWay()
        self._ways[name] = way, self._group.create_task(self._run(name, door, way, redirect_uri))
        return await self._in_time(name, way, way.url)

    async def finish(self, name: str, code: str, state: str, issuer: str) -> tuple[int, str]:
        """How many tools there are, and what is wrong with the server, "" if nothing. Raises AgentdError where
        the login did not work, InvalidRequest for an answer that is not of this login.
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
        """End the login, which the owner or the service does not want. Raises as `finish`."""
        self._way(name, state)
        self._ways[name][1].cancel()

    async def end(self, name: str) -> bool:
        """Whether there was a login; there is none now, and the server is stopped. Raises AgentdError."""
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
            # A fault of a library's ends this login alone.
            log.exception("mcp_login_crashed", server=name)
            way.fail(AgentdError("the login did not work", cure="`agentd logs` says why"))
        finally:
            way.fail(AgentdError("the login was given up", cure=_again(name)))
            if self._ways.get(name, (None,))[0] is way:
                del self._ways[name]

    async def _in_time(self, name: str, way: LoginWay, waited: asyncio.Future[T]) -> T:
        """What the service has to give without the user. One that takes its time ends the login."""
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
