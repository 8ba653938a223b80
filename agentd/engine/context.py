"""Builds prompts from the workspace's text, the tools and the history.

`build_prompt` is pure: equal rows always give equal messages, and stored rows are never changed.
Text that belongs to one turn only (the time, retrieved memories) goes before the user's words of
that turn, and the cache breakpoint goes before that message. Opaque blocks are sent whichever
provider wrote them, because another provider may answer the next call; each provider leaves out the
blocks of others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.clock import minute
from agentd.core.compaction import Question
from agentd.core.errors import AgentdError
from agentd.core.health import Problem
from agentd.core.message import Block, Image, Message, Role, Text, ToolResult
from agentd.core.offloading import ROWS, offload
from agentd.core.outside import without_outside_text
from agentd.core.ports import Clock, ContextSource, Provider
from agentd.core.prompt import ContextBlock, Prompt, ToolSpec
from agentd.core.text import shorten
from agentd.core.transcript import (
    UNCHOSEN,
    AvailableChoices,
    Choices,
    History,
    Row,
    RowRole,
    opens_turn,
)
from agentd.core.turn import Origin, PromptScope, SessionKind, TurnRequest, kind_of
from agentd.engine.toolbox import Toolbox

log = structlog.get_logger()

_LONG_AGO = timedelta(minutes=5)
ALERT_TAG = "alert"
FAILURE_TAG = "failure"
_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?data)", re.IGNORECASE)
_BLANK = "(a message without words)"
_BEGINNING = "(The conversation begins here.)"


class RenderedPast(Struct, frozen=True):
    """The conversation before a turn, as the turn's calls carry it: `rows` are the rows of earlier
    turns, notices included, `messages` are what the model reads of them, and `notices` are the
    alerts after the last user row, which the model has not read yet.
    """

    rows: tuple[Row, ...] = ()
    messages: tuple[Message, ...] = ()
    notices: str = ""
    is_tainted: bool = False  # the rows hold text from outside, or text derived from it


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


def render_past(rows: Sequence[Row], summary: str = "", zone: tzinfo = UTC) -> RenderedPast:
    """Return the rows before a turn, and the summary of what was before them, as messages with
    times in `zone`.

    Messages whose turn failed before the model said anything are left out: nobody waits for their
    answer any more, and a service that refused one would refuse every later call.
    """
    kept = without_failed(rows)
    messages = _messages(kept, zone)
    if summary:
        messages = _merge_neighbours([Message(Role.USER, (Text(_summary(summary)),)), *messages])
    elif messages and messages[0].role is Role.ASSISTANT:  # an imported conversation may begin so
        messages = [Message(Role.USER, (Text(_BEGINNING),)), *messages]
    is_tainted = any(row.source.tainted and row.role.is_spoken for row in rows)
    return RenderedPast(tuple(rows), tuple(messages), _open_notices(kept, zone), is_tainted)


def build_prompt(
    context: TurnPromptParts, turn: Sequence[Row], *, clip_results: int | None = None
) -> Prompt:
    """Return the prompt of a turn's next model call. `turn` holds the turn's rows so far, its user
    row first. With `clip_results` every tool result of this turn is cut to that many characters.
    """
    past = context.past.messages
    rows = turn if clip_results is None else _clip_results(turn, clip_results)
    now = _messages(rows, context.zone)
    prefix = tuple(Text(t) for t in (context.past.notices, context.volatile) if t)
    now[0] = replace(now[0], blocks=(*prefix, *now[0].blocks))
    messages = _merge_neighbours([*past, *now])
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


def fence(label: str, text: str) -> str:
    """Return text from elsewhere in a `<data>` element that names its source; the text cannot close
    the element.
    """
    body = _TAG.sub("<\u200b", text)
    return f'<data source="{label}">\n{body}\n</data>'


def _messages(rows: Iterable[Row], zone: tzinfo) -> list[Message]:
    messages: list[Message] = []
    notices: list[str] = []
    for row in rows:
        if row.role is RowRole.NOTICE:
            if row.tag.startswith(ALERT_TAG):
                notices.append(_notice(row, zone))
            continue
        if row.role is RowRole.SUMMARY:
            continue
        blocks = tuple(b for b in row.blocks if not isinstance(b, Text) or b.text.strip())
        if row.role is RowRole.USER and all(isinstance(b, Image) for b in blocks):
            blocks = (*blocks, Text(_BLANK))
        if notices and opens_turn(row):
            blocks = (*(Text(n) for n in notices), *blocks)
            notices = []
        if blocks:
            messages.append(Message(Role(row.role.value), blocks))
    return _merge_neighbours(messages)


def without_failed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without the messages whose only answer is a failure. Message and failure are
    matched by turn id, because rows of other turns may stand between them. Copied rows have no turn
    ids; there a failure belongs to the last message before it.
    """
    gone: set[int] = set()
    turns: dict[int | None, list[Row]] = {}
    for row in rows:
        if row.role.is_spoken:
            if row.turn_id is None and opens_turn(row):
                turns.pop(None, None)
            turns.setdefault(row.turn_id, []).append(row)
        elif row.role is RowRole.NOTICE and row.tag == FAILURE_TAG:
            turn = turns.pop(row.turn_id, [])
            if not any(r.role is RowRole.ASSISTANT for r in turn):
                gone |= {r.seq for r in turn}
    return [row for row in rows if row.seq not in gone]


def _open_notices(rows: Sequence[Row], zone: tzinfo) -> str:
    """Return the alert notices after the last user row; they go before the new user message."""
    found: list[str] = []
    for row in reversed(rows):
        if opens_turn(row):
            break
        if row.role is RowRole.NOTICE and row.tag.startswith(ALERT_TAG):
            found.append(_notice(row, zone))
    return "\n".join(reversed(found))


def _notice(row: Row, zone: tzinfo) -> str:
    return fence(f"agentd alert of {minute(row.at, zone)}, shown to the user", row.text)


def _summary(summary: str) -> str:
    return fence("agentd, summary of the conversation before this point", summary)


def _merge_neighbours(messages: Iterable[Message]) -> list[Message]:
    """Join neighbouring messages of one role into one, as the API reads them anyway."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role is message.role:
            merged[-1] = Message(message.role, (*merged[-1].blocks, *message.blocks))
        else:
            merged.append(message)
    return merged


def _clip_results(rows: Sequence[Row], limit: int) -> list[Row]:
    return [replace(r, blocks=tuple(clip(b, limit) for b in r.blocks)) for r in rows]


def clip(block: Block, limit: int) -> Block:
    """Return a tool result cut to `limit` characters, with a note about the cut; any other block
    unchanged.
    """
    if not isinstance(block, ToolResult) or len(block.text) <= limit:
        return block
    return replace(block, text=shorten(block.text, limit, "to make room"))


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
        rendered = await offload(
            len(past.rows),
            partial(render_past, past.rows, past.summary, self._clock.zone),
            light=ROWS,
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
