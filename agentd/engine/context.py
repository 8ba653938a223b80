"""Builds prompts from the workspace's text, the tools and the history.

`PromptGatherer` gathers what stays the same during a turn, and `build_prompt`, which is pure, makes
a call's prompt of it and the turn's rows. Text that belongs to one turn only (the time, retrieved
memories) goes before the user's words of that turn, and the cache breakpoint goes before that
message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.compaction import Question
from agentd.core.errors import AgentdError
from agentd.core.health import Problem
from agentd.core.message import Role, Text
from agentd.core.offloading import offload_rows
from agentd.core.outside import without_outside_text
from agentd.core.ports import Clock, ContextSource, Provider
from agentd.core.prompt import ContextBlock, Prompt, ToolSpec
from agentd.core.transcript import UNCHOSEN, AvailableChoices, Choices, History, Row
from agentd.core.turn import Origin, PromptScope, SessionKind, TurnRequest, kind_of
from agentd.engine.rendering import (
    RenderedPast,
    clip_rows,
    merge_neighbours,
    render_past,
    render_rows,
)
from agentd.engine.toolbox import Toolbox

log = structlog.get_logger()

_LONG_AGO = timedelta(minutes=5)


class TurnPromptParts(Struct, frozen=True):
    """The parts of a prompt that stay the same while one turn runs."""

    request: TurnRequest
    system: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    past: RenderedPast
    volatile: str
    provider: str
    choices: Choices = UNCHOSEN
    zone: tzinfo = UTC  # the owner's; all times in the prompt are in it


def build_prompt(
    context: TurnPromptParts, turn: Sequence[Row], *, clip_results: int | None = None
) -> Prompt:
    """Return the prompt of a turn's next model call. `turn` holds the turn's rows so far, its user
    row first. With `clip_results` every tool result of this turn is cut to that many characters.
    """
    past = context.past.messages
    rows = turn if clip_results is None else clip_rows(turn, clip_results)
    now = render_rows(rows, context.zone)
    prefix = tuple(Text(t) for t in (context.past.notices, context.volatile) if t)
    now[0] = replace(now[0], blocks=(*prefix, *now[0].blocks))
    messages = merge_neighbours([*past, *now])
    cached = len(past) - (1 if past and past[-1].role is Role.USER else 0)
    return Prompt(
        system=context.system,
        messages=tuple(messages),
        tools=context.tools,
        cached_messages=cached,
        model=context.request.model or context.choices.model or None,
        effort=context.choices.effort,
        origin=context.request.origin,
    )


def clock_line(now: datetime) -> str:
    """Return the line that tells the model the time."""
    return f"[Now: {now:%A %Y-%m-%d %H:%M} {now.tzname()}]"


def sent_line(sent: datetime) -> str:
    """Return the line that tells the model when a message that has waited was sent."""
    return (
        f"[This message was sent {sent:%A %Y-%m-%d %H:%M} {sent.tzname()}; it "
        "is answered only now.]"
    )


class Instructions(Struct, frozen=True):
    """agentd's own instructions for the model: `system` in conversations, `light` in light silent
    turns. `of_tools` maps names of tools to texts that are added to `system` in turns that have the
    tool.
    """

    system: str
    light: str
    of_tools: Mapping[str, str] = field(default_factory=dict)

    def text_for(self, request: TurnRequest, tools: Sequence[ToolSpec]) -> str:
        """Return the instructions with which the system prompt of such a turn with these tools
        begins.
        """
        if request.context is PromptScope.LIGHT:
            return self.light.strip()
        there = {tool.name for tool in tools}
        own = (text.strip() for name, text in self.of_tools.items() if name in there)
        return "\n".join((self.system.strip(), *own))


class PromptGatherer:
    """Gathers what all prompts of a turn share, as it is when the turn starts: instructions,
    workspace text, tools, history.
    """

    def __init__(
        self,
        sources: Sequence[ContextSource],
        toolbox: Toolbox,
        clock: Clock,
        provider: Provider,
        instructions: Instructions,
        offer: AvailableChoices,
    ) -> None:
        self._sources = tuple(sources)
        self._toolbox = toolbox
        self._clock = clock
        self._provider = provider
        self._instructions = instructions
        self._offer = offer
        self._broken: dict[int, Problem] = {}  # by index of the source

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each source that failed when it last had to add to a prompt."""
        return tuple(self._broken.values())

    async def for_turn(
        self,
        request: TurnRequest,
        past: History,
        sent: datetime | None = None,
        without: Collection[ContextSource] = (),
    ) -> TurnPromptParts:
        """Return the context of a request over the session's history before it; a light request
        gets no history. `sent` is when the message was sent: the prompt mentions a time five
        minutes ago or earlier. The sources `without` add nothing.
        """
        light = request.context is PromptScope.LIGHT
        past = History(request.session) if light else carried(past)
        return await self._gather(request, None, past, sent, without)

    async def for_question(self, question: Question, request: TurnRequest) -> TurnPromptParts:
        """Return the context of a hook's silent question, over the rows that it is about."""
        past = History(request.session, rows=question.rows, summary=question.summary)
        return await self._gather(request, question.system, past)

    async def _blocks(
        self, request: TurnRequest, without: Collection[ContextSource]
    ) -> list[ContextBlock]:
        found: list[ContextBlock] = []
        for index, source in enumerate(self._sources):
            if source in without:
                continue
            try:
                found += await source.blocks(request)
            except Exception as error:
                # Boundary: a defect in one source must not end every conversation.
                log.exception("context_source_broke", source=type(source).__name__)
                self._broken[index] = _broke(source, error)
            else:
                self._broken.pop(index, None)
        return found

    async def _gather(
        self,
        request: TurnRequest,
        base: str | None,
        past: History,
        sent: datetime | None = None,
        without: Collection[ContextSource] = (),
    ) -> TurnPromptParts:
        tools = self._toolbox.specs(request)
        said = self._instructions.text_for(request, tools) if base is None else base.strip()
        blocks = await self._blocks(request, without)
        stable = (b.text for b in sorted(blocks, key=lambda b: b.rank) if b.stable and b.text)
        rendered = await offload_rows(
            past.rows, partial(render_past, past.rows, past.summary, self._clock.zone)
        )
        now = self._clock.now().astimezone(self._clock.zone)
        loose = [b.text for b in blocks if not b.stable]
        if request.origin is not Origin.HEARTBEAT:  # a beat's message ends with the time
            loose.append(clock_line(now))
        if not request.is_silent and sent is not None and now - sent >= _LONG_AGO:
            loose.append(sent_line(sent.astimezone(self._clock.zone)))
        return TurnPromptParts(
            request=request,
            system=(said, *stable),
            tools=tools,
            past=rendered,
            volatile="\n\n".join(loose),
            provider=self._provider.name,
            choices=UNCHOSEN if request.is_silent else self._offer.kept(past.choices),
            zone=self._clock.zone,
        )


def _broke(source: ContextSource, error: Exception) -> Problem:
    reason = error.reason if isinstance(error, AgentdError) else type(error).__name__
    return Problem(
        "context_source_broke",
        (
            f"{type(source).__name__} could not add to the prompt ({reason}); "
            "answers go on without it."
        ),
        error.cure if isinstance(error, AgentdError) else "Read the log: `agentd logs`.",
    )


def carried(past: History) -> History:
    """Return what a prompt carries of a session's past. In the owner's own sessions compaction ends
    taint: text from outside is removed from the rows up to the last compaction (`swapped_at`).
    """
    if kind_of(past.session) is not SessionKind.OWNER:
        return past
    return replace(past, rows=without_outside_text(past.session, past.rows, past.swapped_at))


def bare(request: TurnRequest) -> TurnPromptParts:
    """Return an empty context, for a turn that ends without another model call."""
    return TurnPromptParts(request, (), (), RenderedPast(), "", "")
