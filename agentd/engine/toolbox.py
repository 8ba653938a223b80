"""Runs tool calls: checks them, asks for approval, journals them, limits their time and output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import fastjsonschema
import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import AgentdError, StorageError, ToolFailed
from agentd.core.failpoints import hit
from agentd.core.message import JsonObject
from agentd.core.ports import Clock, FileTool, Journal, Tool, ToolSource
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.redaction import Redactor
from agentd.core.text import shorten
from agentd.core.tool import (
    Approval,
    FileIntent,
    Intent,
    OpenCall,
    ToolCall,
    ToolOutput,
)
from agentd.core.turn import OTHERS, PromptScope, SessionKind, TurnRequest
from agentd.engine.approvals import Approvals, Ruling, whole
from agentd.engine.durable import when_space
from agentd.engine.queue import Interrupt, Interrupted
from agentd.engine.settings import AgentSettings

log = structlog.get_logger()

UNKNOWN_OUTCOME = (
    "The daemon stopped while this ran, so its outcome is unknown after the restart. "
    "It was not run again. Check before you repeat it."
)
_STOPPED = "The user stopped this call. What it has done by then is unknown."


def _unheard(_: str) -> None:
    """Show nothing: nobody watches."""


class Toolbox:
    """All tools of the daemon: says what a turn may call, and runs the calls."""

    def __init__(
        self,
        tools: Sequence[Tool],
        journal: Journal,
        approvals: Approvals,
        clock: Clock,
        settings: AgentSettings,
        *,
        redactor: Redactor | None = None,
        tool_sources: Sequence[ToolSource] = (),
    ) -> None:
        """`redactor` removes secrets from the arguments of calls, since a tool would store them
        with what it writes. `tool_sources` offer tools that only some turns have.
        """
        self._tool_sources = tuple(tool_sources)
        self._redactor = redactor or Redactor()
        self._tools = {t.spec.name: t for t in tools}
        self._checks = {name: _check(tool.spec) for name, tool in self._tools.items()}
        self._journal = journal
        self._approvals = approvals
        self._clock = clock
        self._settings = settings

    def specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the tools that the model of this turn may call, in a fixed order; in a light
        prompt with their short schemas.
        """
        light = request.context is PromptScope.LIGHT
        own = tuple(
            _in_short(tool.spec) if light else tool.spec
            for name, tool in self._tools.items()
            if _allows_own(request, tool.spec)
        )
        return (*own, *self.sourced_specs(request))

    def sourced_specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the tools of the tool sources that the model of this turn may call."""
        return tuple(
            spec
            for tool_source in self._tool_sources
            for spec in tool_source.specs(request)
            if _allows_sourced(request, spec.name)
        )

    def spec(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool of our own; None if there is no such tool."""
        tool = self._tools.get(name)
        return tool.spec if tool else None

    def kind(self, name: str, request: TurnRequest) -> str:
        """Return the kind of the tool in the words of the Agent Client Protocol; `other` if it is
        unknown.
        """
        if tool := self._tools.get(name):
            return tool.spec.kind
        return next(
            (spec.kind for spec in self.sourced_specs(request) if spec.name == name), "other"
        )

    def refusal(self, index: int, made: int) -> ToolOutput | None:
        """Return the error output of a call beyond the limits of an answer or a turn; None if the
        call may run. `index` is its position in the answer, from 0, `made` the number of earlier
        calls of the turn.
        """
        if index >= (most := self._settings.max_answer_tool_calls):
            return ToolOutput(f"Not run: one answer may make {most} calls.", is_error=True)
        if made >= (most := self._settings.max_turn_tool_calls):
            return ToolOutput(f"Not run: one turn may make {most} calls.", is_error=True)
        return None

    async def run(
        self,
        turn_id: int,
        call: ToolCall,
        request: TurnRequest,
        interrupt: Interrupt,
        *,
        chars_before: int = 0,
        show: Callable[[str], None] = _unheard,
    ) -> ToolOutput:
        """Run the call, journal its output and return it. Every refusal is an error output for the
        model. `chars_before` is how many characters the turn's tools have returned before; `show`
        gets the progress reports of the tool.

        Raises StorageError when the journal cannot be written, Interrupted when the user stops the
        turn during a question or during a call of a tool source's tool.
        """
        call = replace(call, input=self._redactor.plain(call.input))
        output = await self._attempt(turn_id, call, request, interrupt, show)
        room = self._settings.max_turn_tool_output - chars_before
        most = max(0, min(self._settings.max_tool_output, room))
        output = replace(output, text=shorten(output.text, most))
        hit("tool.done")
        await when_space(self._clock, self._journal.settle, turn_id, call.id, output)
        hit("tool.settled")
        return output

    def reads(self, call: ToolCall, request: TurnRequest) -> bool | None:
        """Return whether the call only reads, as far as its tool says; None if it does not name a
        tool of a tool source that such a turn may call.
        """
        if call.name in self._tools:
            return None
        try:
            tool, _ = self._resolve(call, request)
        except ToolFailed:
            return None
        return _only_reads(tool.spec)

    async def repeat(self, call: ToolCall, request: TurnRequest) -> ToolOutput:
        """Repeat, outside of any turn, a call that such a turn has made, if it only reads. Failures
        are error outputs. The call is not journaled: a crash leaves nothing to be settled. Raises
        StorageError.
        """
        call = replace(call, input=self._redactor.plain(call.input))

        async def run(_: asyncio.Timeout) -> ToolOutput:
            tool, resolved = self._resolve(call, request)
            if not _only_reads(tool.spec):
                raise ToolFailed(f"{call.name} does not say any more that it only reads")
            return await tool.run(resolved, _NoUserHost())

        output = await self._bounded(call, run)
        return replace(output, text=shorten(output.text, self._settings.max_tool_output))

    async def recover(self, found: OpenCall) -> None:
        """Settle a call that a crash cut after its intent, or leave it to be run again."""
        intent = found.intent
        tool = self._tools.get(intent.call.name) if intent else None
        if intent is None or (tool and _may_repeat(tool.spec.effect)):
            return
        output = ToolOutput(UNKNOWN_OUTCOME, is_error=True)
        if isinstance(tool, FileTool) and intent.file is not None:
            try:
                output = await tool.settle(intent)
            except StorageError:
                raise
            except AgentdError as error:
                output = _refusal(error)
            except Exception:
                # A defect in one tool must not keep the daemon from starting.
                log.exception("tool_crashed", tool=intent.call.name, turn=found.turn_id)
        log.info("tool_settled", tool=intent.call.name, turn=found.turn_id, error=output.is_error)
        await when_space(self._clock, self._journal.settle, found.turn_id, found.call_id, output)

    async def settle_open(self, turn_id: int) -> None:
        """Settle, as `recover` does, every call of the turn that was cut after its intent."""
        for found in await when_space(self._clock, self._journal.open_calls):
            if found.turn_id == turn_id:
                await self.recover(found)

    async def _attempt(
        self,
        turn_id: int,
        call: ToolCall,
        request: TurnRequest,
        interrupt: Interrupt,
        show: Callable[[str], None],
    ) -> ToolOutput:
        try:
            tool, call = self._resolve(call, request)
        except ToolFailed as error:
            return _refusal(error)
        ruling = self._approvals.judge(call, tool.spec)
        if ruling is Ruling.REFUSE:
            return ToolOutput(self._approvals.refusal(call), is_error=True)

        async def run(limit: asyncio.Timeout) -> ToolOutput:
            intend = partial(self._intend, turn_id)
            host = _TurnHost(intend, self._approvals, call, limit, interrupt, show)
            if ruling is Ruling.ASK and not await host.approve(whole(call)):
                return ToolOutput(f"The user did not allow {call.name}.", is_error=True)
            if tool.spec.effect in (Effect.EXTERNAL, Effect.IDEMPOTENT):
                await host.intend()
            if call.name in self._tools:
                return await tool.run(call, host)
            return await self._run_sourced(turn_id, tool, call, host)

        return await self._bounded(call, run)

    async def _bounded(
        self, call: ToolCall, run: Callable[[asyncio.Timeout], Awaitable[ToolOutput]]
    ) -> ToolOutput:
        """Return the output of a call, which `run` makes within the time limit of a tool; a failure
        of the call is an error output.

        Raises StorageError, Interrupted.
        """
        seconds = self._settings.tool_timeout.total_seconds()
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await run(limit)
        except (StorageError, Interrupted):
            raise
        except AgentdError as error:
            return _refusal(error)
        except Exception:
            if limit.expired():
                text = f"{call.name} took longer than {seconds:g} s and was stopped."
                return ToolOutput(text, is_error=True)
            # A defect in one tool ends neither turn nor beat: the log has the traceback.
            log.exception("tool_crashed", tool=call.name, session=call.session)
            return ToolOutput(f"{call.name} failed inside agentd; the log says why.", is_error=True)

    def _resolve(self, call: ToolCall, request: TurnRequest) -> tuple[Tool, ToolCall]:
        """Return the tool that the call names, and the call in the form that the tool expects.
        Raises ToolFailed when the turn has no such tool, and for an input that does not fit its
        schema.
        """
        tool = self._tools.get(call.name)
        for tool_source in self._tool_sources if tool is None else ():
            found = tool_source.find(call, request)
            if found and _allows_sourced(request, found[0].spec.name):
                return found
        if tool is None or not _allows_own(request, tool.spec):
            known = ", ".join(s.name for s in self.specs(request))
            raise ToolFailed(f"There is no tool {call.name!r} here. There are: {known}.")
        call = replace(call, input=_without_optional_nulls(tool.spec, call.input))
        wrong = self._checks[call.name](call.input)
        if wrong:
            raise ToolFailed(f"The input does not fit {call.name}: {wrong}.")
        return tool, call

    async def _run_sourced(
        self, turn_id: int, tool: Tool, call: ToolCall, host: _TurnHost
    ) -> ToolOutput:
        """Run a tool of a tool source. The user may stop it at any moment: such a tool writes no
        file of the workspace, so none is left half written. Raises Interrupted.
        """
        try:
            async with host.interrupt.guard():
                return await tool.run(call, host)
        except Interrupted:
            if tool.spec.effect is Effect.EXTERNAL:
                output = ToolOutput(_STOPPED, is_error=True)
                await when_space(self._clock, self._journal.settle, turn_id, call.id, output)
            raise

    async def _intend(self, turn_id: int, intent: Intent) -> None:
        """Journal an intent durably."""
        hit("tool.planned")
        await when_space(self._clock, self._journal.intend, turn_id, intent)
        hit("tool.intended")


class _TurnHost(Struct):
    """The host of a call that a turn makes; `make_durable` journals what the call is about
    to do.
    """

    make_durable: Callable[[Intent], Awaitable[None]]
    approvals: Approvals
    call: ToolCall
    limit: asyncio.Timeout
    interrupt: Interrupt
    tell: Callable[[str], None]

    async def approve(self, approval: Approval) -> bool:
        """Ask the user and return his answer; the time that he takes does not count as the
        tool's.
        """
        with self.paused():
            allowed = await self.approvals.ask(self.call, approval, self.interrupt)
        self.call = replace(self.call, approved=allowed)
        return allowed

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Journal the intent. Waiting for disk space does not count as the tool's time. A file
        change has no time limit once it is journaled: stopped half-way, it would be reported as not
        done although it was.
        """
        with self.paused():
            await self.make_durable(Intent(self.call, intent))
        if intent is not None:
            self.limit.reschedule(None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the tool's time limit during the block."""
        loop, deadline = asyncio.get_running_loop(), self.limit.when()
        begun = loop.time()
        self.limit.reschedule(None)
        try:
            yield
        finally:
            if deadline is not None:
                self.limit.reschedule(deadline + loop.time() - begun)


class _NoUserHost:
    """The host of a call that is made outside of turns."""

    async def approve(self, approval: Approval) -> bool:
        """Return False: nobody can be asked."""
        return False

    def tell(self, text: str) -> None:
        """Drop the report: nobody watches."""

    def paused(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing: no question to the user uses up time."""
        return nullcontext()

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Do nothing: the call only reads."""


def _allows_own(request: TurnRequest, spec: ToolSpec) -> bool:
    """Whether a turn may call a tool of our own. A tool that it may not call is not offered to it
    either.
    """
    if spec.is_owners and request.kind is not SessionKind.OWNER:
        return False
    return request.tools is None or spec.name in request.tools


def _allows_sourced(request: TurnRequest, name: str) -> bool:
    """Whether a turn may call a tool of that name from a tool source."""
    return request.tools is None or OTHERS in request.tools or name in request.tools


def _only_reads(spec: ToolSpec) -> bool:
    return spec.effect is Effect.READ_ONLY or spec.kind == "read"


def _without_optional_nulls(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Return the arguments without optional ones that are null: many models send null where they
    mean to leave an argument out.
    """
    needed = spec.input_schema.get("required", ())
    return {name: value for name, value in arguments.items() if value is not None or name in needed}


def _in_short(spec: ToolSpec) -> ToolSpec:
    return spec if spec.short_schema is None else replace(spec, input_schema=spec.short_schema)


def _may_repeat(effect: Effect) -> bool:
    return effect in (Effect.READ_ONLY, Effect.IDEMPOTENT)


def _check(spec: ToolSpec) -> Callable[[Any], str]:
    schema = json.dumps(dict(spec.input_schema))

    def check(value: Any) -> str:
        validate = _validator(schema)  # compiled at first use: a start does not wait for it
        try:
            validate(json.loads(json.dumps(dict(value))))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message).replace("data.", "").replace("data ", "the input ")
        return ""

    return check


@cache
def _validator(schema: str) -> Callable[[Any], Any]:
    validate: Callable[[Any], Any] = fastjsonschema.compile(json.loads(schema))
    return validate


def _refusal(error: AgentdError) -> ToolOutput:
    """Return an error output that says what happened and what to do, as two sentences or as one."""
    joint = ". " if error.cure[:1].isupper() else "; "
    text = joint.join(part for part in (error.message.rstrip("."), error.cure) if part)
    return ToolOutput(text, is_error=True)
