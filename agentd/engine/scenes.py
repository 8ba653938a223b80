"""Gathers what a turn's prompts have in common: instructions, workspace text, tools, history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agentd.domain.choices import UNCHOSEN, Offer
from agentd.domain.compaction import Question
from agentd.domain.outside import cleaned
from agentd.domain.transcript import History
from agentd.domain.turn import Context, Kind, Origin, TurnRequest, kind_of
from agentd.domain.workspace import ContextBlock
from agentd.engine.prompt import Scene, clock_line, sent_line
from agentd.engine.toolbox import Toolbox
from agentd.ports import Clock, ContextSource, Provider

_LONG_AGO = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Instructions:
    """What agentd itself tells the model: in conversations, and in light silent turns."""

    system: str
    light: str


class Scenes:
    """Makes the scene of a turn from what holds at its start."""

    def __init__(
        self,
        sources: Sequence[ContextSource],
        toolbox: Toolbox,
        clock: Clock,
        provider: Provider,
        instructions: Instructions,
        offer: Offer,
    ) -> None:
        self._sources = tuple(sources)
        self._toolbox = toolbox
        self._clock = clock
        self._provider = provider
        self._instructions = instructions
        self._offer = offer

    async def for_turn(
        self,
        request: TurnRequest,
        past: History,
        sent: datetime | None = None,
        without: Collection[ContextSource] = (),
    ) -> Scene:
        """The scene of a request over the session's history before it. A message that was sent long ago
        says when. What the sources `without` add to prompts is left out.
        """
        light = request.context is Context.LIGHT
        base = self._instructions.light if light else self._instructions.system
        past = History(request.session) if light else carried(past)
        return await self._scene(request, base, past, sent, without)

    async def for_question(self, question: Question, request: TurnRequest) -> Scene:
        """The scene of a hook's silent question over the rows it is about."""
        past = History(request.session, rows=question.rows, summary=question.summary)
        return await self._scene(request, question.system, past)

    async def _scene(
        self,
        request: TurnRequest,
        base: str,
        past: History,
        sent: datetime | None = None,
        without: Collection[ContextSource] = (),
    ) -> Scene:
        sources = [source for source in self._sources if source not in without]
        blocks = [b for source in sources for b in await source.blocks(request)]
        now = self._clock.now().astimezone(self._clock.zone)
        loose = [b.text for b in blocks if not b.stable]
        if request.origin is not Origin.HEARTBEAT:  # a beat's own words end in the time
            loose.append(clock_line(now))
        if request.origin is Origin.USER and sent is not None and now - sent >= _LONG_AGO:
            loose.append(sent_line(sent.astimezone(self._clock.zone)))
        return Scene(
            request=request,
            system=(base.strip(), *_stable(blocks)),
            tools=self._toolbox.specs(request),
            past=past.rows,
            summary=past.summary,
            volatile="\n\n".join(loose),
            provider=self._provider.name,
            choices=self._offer.kept(past.choices) if request.origin is Origin.USER else UNCHOSEN,
        )


def carried(past: History) -> History:
    """What a prompt carries of a session's past. In the owner's own sessions compaction ends taint: the
    text from outside that was there before it has left the context.
    """
    if kind_of(past.session) is not Kind.MAIN:
        return past
    return replace(past, rows=cleaned(past.session, past.rows, past.swapped_at))


def bare(request: TurnRequest) -> Scene:
    """The scene of a turn that ends without another call."""
    return Scene(request, (), (), (), "", "", "")


def _stable(blocks: Sequence[ContextBlock]) -> tuple[str, ...]:
    return tuple(b.text for b in sorted(blocks, key=lambda b: b.rank) if b.stable and b.text)
