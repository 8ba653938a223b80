"""Logins that are under way: begun by a command, finished by what the browser brings back."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import structlog

from agentd.core.errors import AgentdError, InvalidRequest, NotFound, ShuttingDown
from agentd.core.ports import Clock
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.login_store import LoginStore
from agentd.interfaces.mcp.server import RecallServer
from agentd.interfaces.mcp.waiting import within

log = structlog.get_logger()

LONGEST = 600.0  # seconds that a login may take, the user's part included
_SERVICE = 60.0  # seconds for what the service does without the user
T = TypeVar("T")


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
