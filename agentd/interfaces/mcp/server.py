"""One MCP server: started at its first call, stopped when idle, not retried for a while after a
failure.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Any, TypeVar

import structlog

from agentd.core.errors import ShuttingDown
from agentd.core.form import FormAnswer
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.catalogue import RESOURCE, RESOURCE_TOOL, Catalogue, CatalogueEntry
from agentd.interfaces.mcp.link import (
    LOGIN_NEEDED,
    Fill,
    Link,
    ListedResource,
    ServerAnswer,
    ServerDescription,
    ServerFault,
    SessionOpener,
    Show,
)
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.waiting import Pauses, first, within
from agentd.interfaces.tools.fence import printable
from agentd.providers.received import tool_name

log = structlog.get_logger()
T = TypeVar("T")

_FIRST_PAUSE = 2.0  # seconds after a failure; doubles
_LONGEST_PAUSE = 300.0
_FAREWELL = 10.0  # seconds that a session may take to close
_EACH = 1.0  # seconds between two progress texts of a call
_SHOWN = 200  # characters of a progress text or of a resource's name
_LONGEST_URI = 500  # characters; resources with longer ones are not listed, since nobody types them
_BLANK = re.compile(r"\s")
_SLOW_START = (
    "start its command once by hand (npx and uvx load a package at first), or raise start_timeout"
)
_LIST_AGAIN = 10.0  # seconds at least between two listings after reported changes


class ServerState(StrEnum):
    """The state of a server."""

    IDLE = "idle"  # not started; the next call starts it
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"  # failed; not started again before a pause has passed


class ToolServer:
    """An MCP server that is configured or that a client offered, running or not."""

    def __init__(
        self,
        name: str,
        settings: McpServer,
        dial: SessionOpener,
        catalogue: Catalogue,
        clock: Clock,
        redactor: Redactor,
        farewell: float = _FAREWELL,
    ) -> None:
        self._farewell = farewell
        self.name = name
        self.settings = settings
        self.catalogue = catalogue
        self._dial = dial
        self._clock = clock
        self._redactor = redactor
        self._group: asyncio.TaskGroup | None = None
        self._running: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Link] | None = None
        self._stop = asyncio.Event()
        self._is_leaving = False
        self._listing = asyncio.Lock()
        self._calls = 0
        self._used = self._listed = clock.monotonic()
        self._failures = 0
        self._failed_start = 0  # the start (a value of `starts`) whose failure was counted last
        self._again = 0.0  # monotonic seconds before which the server is not started again
        self.fault: ServerFault | None = None  # the last one; None once a call has succeeded again
        self.starts = 0

    def open(self, group: asyncio.TaskGroup) -> None:
        """Allow starts from now on; the server's task runs in `group`."""
        self._group = group

    def close(self) -> None:
        """Stop the server if it runs, and start it no more."""
        self._group = None
        self._stop.set()

    def restart(self, fault: ServerFault | None = None) -> None:
        """Stop the server and let the next call start it at once, without the pause after failures.
        `fault` replaces the last fault.
        """
        self._failures, self._again = 0, 0.0
        self.fault = fault
        self._stop.set()

    @property
    def state(self) -> ServerState:
        """The current state."""
        if self._running is not None:
            is_ready = self._ready is not None and self._ready.done()
            return ServerState.RUNNING if is_ready else ServerState.STARTING
        is_paused = self._failures and self._clock.monotonic() < self._again
        return ServerState.PAUSED if is_paused else ServerState.IDLE

    def entries(self) -> Mapping[str, CatalogueEntry]:
        """Return the server's tools by name, without those whose permission is "deny"."""
        known = self.catalogue.listing.entries.items()
        allowed = self.settings.permission_of
        return {name: entry for name, entry in known if allowed(name) != "deny"}

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        show: Show = lambda _: None,
        fill: Fill | None = None,
    ) -> ServerAnswer:
        """Call a tool (or read a resource, if `tool` is RESOURCE_TOOL) and return the answer; start
        the server if it does not run. `show` gets progress texts, at most one a second. `fill` asks
        the owner for values that the server requests; the time limit of the call does not run
        meanwhile. Raises ServerFault.
        """
        entry = self.catalogue.listing.entries.get(tool)
        if RESOURCE is not None and entry is not None and entry.now == RESOURCE:
            return await self._use(lambda link: link.read(str(arguments["uri"])))
        pauses = Pauses(self._clock)

        async def filled(message: str, schema: Mapping[str, Any]) -> FormAnswer:
            assert fill is not None
            with pauses.paused():
                return await fill(self._redactor.text(message), schema)

        asks = filled if fill else None
        return await self._use(
            lambda link: link.call(tool, arguments, self._calmed(show), asks), pauses
        )

    @property
    def has_resources(self) -> bool:
        """Whether the server offers resources and the owner does not deny `read_resource`."""
        entry = self.entries().get(str(RESOURCE_TOOL["name"]))
        return entry is not None and entry.now == RESOURCE

    async def resources(self) -> tuple[ListedResource, ...]:
        """Return the server's resources with printable addresses and names. Addresses with blanks
        or of more than 500 characters are left out. Raises ServerFault.
        """
        found = await self._use(lambda link: link.resources())
        shown = (
            ListedResource(printable(one.uri), printable(one.name)[:_SHOWN])
            for one in found
            if len(one.uri) <= _LONGEST_URI and not _BLANK.search(one.uri)
        )
        return tuple(shown)

    def accept(self, tool: str) -> None:
        """Record the tool's current definition as known: the owner has seen and accepted it."""
        self.catalogue.keep(self.catalogue.listing.accepted(tool))

    async def refresh(self) -> None:
        """Start the server if it does not run, which lists its tools; of a running one list them
        only if it has reported a change. Raises ServerFault.
        """
        await self._use(self._relist_if_changed)

    def problems(self) -> tuple[Problem, ...]:
        """Return what the owner should know: the last fault, tools that are not offered, changed
        tools.
        """
        found = []
        if self.fault is not None:
            text = f"the MCP server {self.name} failed: {self._redactor.text(self.fault.message)}"
            cure = self.fault.cure or "correct [mcp.servers] or the server, then call it again"
            found.append(Problem(f"mcp_{self.fault.kind}", text, cure))
        alike = len(self.entries()) - len({tool_name(f"{self.name}.{t}") for t in self.entries()})
        if skipped := self.catalogue.listing.skipped + alike:
            text = (
                f"{skipped} tools of the MCP server {self.name} are not offered: too many, "
                "misnamed, or named alike as services spell and cut names"
            )
            found.append(Problem("mcp_skipped", text, "have the server offer fewer tools"))
        if malformed := self.catalogue.listing.malformed:
            text = (
                f"tools of the MCP server {self.name} are left out, since the protocol does not "
                f"allow what it says of them: {', '.join(malformed[:5])}"
            )
            cure = "have them corrected by whoever makes the server; its other tools work"
            found.append(Problem("mcp_malformed", text, cure))
        changed = sorted(name for name, one in self.entries().items() if one.is_changed)
        if changed:
            names = ", ".join(changed[:5])
            text = (
                f"the MCP server {self.name} describes these tools otherwise than before: {names}"
            )
            cure = "you are shown the new words, and asked, at the next call of each"
            found.append(Problem("mcp_changed", text, cure))
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Return the server's entry in `agentd status`."""
        entries = self.catalogue.listing.entries
        return {
            "name": self.name,
            "state": str(self.state),
            "reason": self.fault.kind if self.fault else "",
            "tools": len(self.entries()),
            "denied": len(entries) - len(self.entries()),
            "changed": sum(one.is_changed for one in self.entries().values()),
            "starts": self.starts,
        }

    async def _use(self, work: Callable[[Link], Awaitable[T]], pauses: Pauses | None = None) -> T:
        link = await self._link()
        self._calls += 1
        try:

            async def both() -> T:
                await self._relist_if_changed(link)
                return await work(link)

            done = await within(self._clock, self.settings.timeout.total_seconds(), both(), pauses)
        except TimeoutError:
            if self._calls == 1:  # other calls may still be answered
                self._stop.set()
            raise self._failed(self._late()) from None
        except ServerFault as fault:
            if self.settings.url and self._calls == 1:
                self._stop.set()  # the server may have been restarted and have lost our session
            is_answer = fault.kind == "refused"  # the server works; it refused this request
            raise (self._with_name(fault) if is_answer else self._failed(fault)) from None
        finally:
            self._calls -= 1
            self._used = self._clock.monotonic()
        self._failures, self._failed_start, self.fault = 0, 0, None
        return done

    async def _link(self) -> Link:
        while self._running is not None and (self._is_leaving or self._stop.is_set()):
            await asyncio.wait([self._running])
        if self._running is None:
            if self._group is None:
                raise ShuttingDown
            if (wait := self._again - self._clock.monotonic()) > 0 and self.fault is not None:
                if self.fault.kind == LOGIN_NEEDED:  # waiting does not cure it
                    raise self._with_name(self.fault)
                msg = f"it failed ({self.fault.message}) and is tried again in {wait:.0f} s"
                raise self._with_name(ServerFault("paused", msg))
            self._ready = asyncio.get_running_loop().create_future()
            self._stop.clear()
            self._is_leaving = False
            self.starts += 1
            self._running = self._group.create_task(self._run(self._ready))
        assert self._ready is not None
        return await asyncio.shield(self._ready)

    async def _run(self, ready: asyncio.Future[Link]) -> None:
        """Run one session from start to end. One task does all of it: the session must be closed by
        the task that opened it. Closing is cut off after `farewell` seconds.
        """
        farewell = asyncio.timeout(None)
        failed: Exception | None = None
        try:
            async with farewell, AsyncExitStack() as stack:
                try:
                    link = await self._started(stack)
                    ready.set_result(link)
                    await self._attend(link)
                    self._is_leaving = True
                except Exception as error:
                    failed = error
                    raise
                finally:
                    farewell.reschedule(asyncio.get_running_loop().time() + self._farewell)
        except (ServerFault, TimeoutError, ExceptionGroup) as error:
            if farewell.expired():
                log.warning("mcp_farewell_cut", server=self.name)
            if (told := failed if farewell.expired() else error) is not None:
                self._tell(ready, self._failed(self._start_fault(told)))
        except Exception as error:
            # An error of a library ends this server only.
            log.exception("mcp_crashed", server=self.name)
            self._tell(ready, self._failed(self._start_fault(error)))
        finally:
            self._running = None
            if not ready.done():
                ready.set_exception(ShuttingDown())
                ready.exception()  # nobody may be waiting
            log.info("mcp_stopped", server=self.name)

    def _start_fault(self, error: Exception) -> ServerFault:
        """Return the fault for `error`; of nested exception groups the first innermost error
        counts.
        """
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ServerFault):
            return error
        if isinstance(error, TimeoutError):
            seconds = self.settings.start_timeout.total_seconds()
            cure = _SLOW_START if self.settings.command else ""
            return ServerFault("start_timeout", f"it did not start within {seconds:g} s", cure=cure)
        return ServerFault("crashed", f"its connection broke ({type(error).__name__})")

    async def _started(self, stack: AsyncExitStack) -> Link:
        async def start() -> Link:
            link = await stack.enter_async_context(self._dial())
            await link.introduce()
            await self._relist(link)
            return link

        link = await within(self._clock, self.settings.start_timeout.total_seconds(), start())
        log.info("mcp_started", server=self.name, tools=len(self.entries()))
        return link

    async def _attend(self, link: Link) -> None:
        """Return when the session has ended, a stop is asked for, or the server was idle for the
        configured time. List the tools again when the server reports a change.
        """
        idle = self.settings.idle.total_seconds()
        self._used = self._clock.monotonic()
        while not link.ended.is_set() and not self._stop.is_set():
            left = self._used + idle - self._clock.monotonic()
            if left <= 0 and not self._calls:
                return
            nap = self._clock.sleep(max(left, 1.0))
            await first(link.ended.wait(), self._stop.wait(), link.changed.wait(), nap)
            if link.changed.is_set():
                await self._look_again(link)

    async def _look_again(self, link: Link) -> None:
        """List the tools after a reported change, at most once in `_LIST_AGAIN` seconds."""
        wait = self._listed + _LIST_AGAIN - self._clock.monotonic()
        if wait > 0:
            await first(link.ended.wait(), self._stop.wait(), self._clock.sleep(wait))
        if not link.ended.is_set() and not self._stop.is_set():
            limit = self.settings.timeout.total_seconds()
            try:
                await within(self._clock, limit, self._relist_if_changed(link))
            except TimeoutError:
                raise self._late() from None

    async def _relist_if_changed(self, link: Link) -> None:
        if link.changed.is_set():
            await self._relist(link)

    async def _relist(self, link: Link) -> None:
        async with self._listing:
            said: ServerDescription = await link.said()
            self._listed = self._clock.monotonic()
            tools = [*said.tools]
            names = {one.get("name") for one in tools}
            if said.has_resources and RESOURCE_TOOL["name"] not in names:
                tools.append(RESOURCE_TOOL)
            kept = self.catalogue.listing
            listing = kept.renewed(self.catalogue.source, said.instructions, tools, said.malformed)
            self.catalogue.keep(listing)

    def _calmed(self, show: Show) -> Show:
        """Wrap `show`: texts are redacted, cut, and passed on at most once in `_EACH` seconds."""
        last = -_EACH

        def calmly(text: str) -> None:
            nonlocal last
            if (now := self._clock.monotonic()) - last >= _EACH:
                last = now
                show(printable(self._redactor.text(text))[:_SHOWN])

        return calmly

    def _failed(self, fault: ServerFault) -> ServerFault:
        """Record a failure, which delays the next start, and return it with the server's name.
        Several calls that one start fails count as one failure.
        """
        if fault is not self.fault:
            if self._failed_start != self.starts:
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._failures)
                self._failures += 1
                self._failed_start = self.starts
                self._again = self._clock.monotonic() + pause
            self.fault = fault
            log.warning("mcp_failed", server=self.name, reason=fault.kind)
        return self._with_name(fault)

    def _late(self) -> ServerFault:
        seconds = self.settings.timeout.total_seconds()
        return ServerFault("timeout", f"it did not answer within {seconds:g} s")

    def _with_name(self, fault: ServerFault) -> ServerFault:
        text = self._redactor.text(f"{self.name}: {fault.message}")
        return ServerFault(fault.kind, text, cure=fault.cure)

    @staticmethod
    def _tell(ready: asyncio.Future[Link], fault: ServerFault) -> None:
        if not ready.done():
            ready.set_exception(fault)
            ready.exception()  # the waiter may have left
