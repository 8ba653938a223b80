"""What is known of a fact that is to be forgotten: the words that say it by their evidence, and the texts
that may say it in other words.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

import structlog

from agentd.domain.erasure import MASK, Erasure, Mark, Sought, Written, joined
from agentd.domain.fact import Evidence, Fact
from agentd.domain.turn import SessionKey
from agentd.errors import AgentdError, NotFound
from agentd.memory.facts.candidates import Also, Near, Survey
from agentd.memory.facts.quotes import is_short
from agentd.ports import Writings

log = structlog.get_logger()

_NOTHING = Erasure()

Said = Callable[[SessionKey, int], Awaitable[Written | None]]
FindNear = Callable[[str], Awaitable[Sequence[Near]]]


class Traces:
    """`said` gives a row of a transcript, None if it is gone, `near` the lines nearest to a sentence in
    meaning. Methods raise StorageError, WorkspaceError.
    """

    def __init__(self, texts: Sequence[Writings], said: Said, near: FindNear | None) -> None:
        self._texts = tuple(texts)
        self._said = said
        self._near = near

    async def erasure_of(
        self, facts: Sequence[Fact], evidence: Mapping[str, Sequence[Evidence]]
    ) -> Erasure:
        """What is to be erased of these facts, as far as it is known without a model."""
        several = [
            await self._of_fact(fact, evidence.get(fact.id, ())) for fact in facts if fact.text
        ]
        return joined(several)

    async def _of_fact(self, fact: Fact, evidence: Sequence[Evidence]) -> Erasure:
        spoken = [one for one in evidence if one.session and one.seq]
        marks: list[Mark] = []
        rows: list[str] = []
        for one in spoken:
            row = await self._said(one.session, one.seq)
            if row is None:
                continue
            if one.start < one.end and not one.is_context:
                marks += _quoted(row, one)
            else:
                rows.append(row.where)
        quotes = tuple(dict.fromkeys(mark.span for mark in marks))
        since = min((one.at for one in spoken), default=None)
        value = fact.triple.value if fact.triple is not None else ""
        return Erasure(
            tuple(words for words in (fact.text, *quotes) if not is_short(words)),
            tuple(marks),
            ids=(fact.id,),
            sought=(Sought(fact.id, fact.text, value, quotes, tuple(rows), since),),
        )

    async def named(
        self, erasure: Erasure, also: Sequence[int], shown: Sequence[Also] | None
    ) -> tuple[Mark, ...]:
        """The marks of mentions that the user names by their numbers. `shown` are those of the preview;
        None has them found again. Raises NotFound.
        """
        if shown is None:
            shown = await asyncio.to_thread((await self.survey(erasure)).mentions, erasure)
        known = {one.mention.n: one for one in shown}
        if missing := [n for n in also if n not in known]:
            raise NotFound(
                f"no mention has the number {missing[0]}",
                cure="look at the numbers again with --dry-run",
            )
        return tuple(chain.from_iterable(known[n].marks for n in also))

    async def survey(self, erasure: Erasure, counts: Counter[str] | None = None) -> Survey:
        """All texts looked through for these facts. `counts` is given how many texts of each place would
        be masked without a model.
        """
        near = {one.id: await self._nearest(one.text) for one in erasure.sought}
        quoted: dict[str, list[tuple[Mark, datetime]]] = defaultdict(list)
        for mark in erasure.marks:
            if mark.start is not None and (row := await self._row(mark)) and row.at:
                quoted[row.text].append((mark, row.at))
        survey = Survey(erasure.sought, near, quoted)
        await self.look_through(survey, erasure, counts)
        return survey

    async def look_through(
        self, survey: Survey, erasure: Erasure = _NOTHING, counts: Counter[str] | None = None
    ) -> None:
        """Show all texts to a survey."""
        for source in self._texts:
            async for texts in source.texts(survey):
                await asyncio.to_thread(survey.add, texts)
                if counts is not None:
                    found = await asyncio.to_thread(_count, texts, erasure, source.name)
                    counts.update({source.name: found} if found else {})

    async def _nearest(self, text: str) -> Sequence[Near]:
        if self._near is None:
            return ()
        try:
            return await self._near(text)
        except AgentdError as error:
            log.warning("forgetting_without_search", reason=error.reason)
            return ()

    async def _row(self, mark: Mark) -> Written | None:
        path, _, seq = mark.where.rpartition(":")
        session = path.removeprefix("sessions/").removesuffix(".jsonl")
        return await self._said(SessionKey(session), int(seq)) if seq.isdecimal() else None


def _quoted(row: Written, evidence: Evidence) -> Iterator[Mark]:
    """The user's words, without what was masked of them before."""
    at = evidence.start
    for words in row.text[evidence.start : evidence.end].split(MASK):
        if any(unicodedata.category(letter)[0] not in "PZC" for letter in words):
            yield Mark(row.where, words, at)
        at += len(words) + len(MASK)


def _count(texts: Sequence[Written], erasure: Erasure, place: str) -> int:
    """How many of the texts would be masked without a model."""
    return sum(
        bool(erasure.found(one.text, one.where, begins=0))
        for one in texts
        if not (one.by_user and place == "notes")
    )
