"""Forgets everywhere: carries erasures on until no place contains the words any more.

The user's words that state a fact are masked, with their copies. Where such words state something
else, too, and in texts that agentd wrote, a model marks the words to mask. Nothing else is changed;
other mentions are listed. The words to erase are stored durably until then, and deleted last.
Erasing a place twice is harmless, so after a failure or crash everything left is done again.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.erasure import MASK, Erasure, PlacedWords, StoredText, UntracedFact, join_erasures
from agentd.core.errors import AgentdError, Busy, InvalidRequest, NotFound
from agentd.core.fact import ErasureReport, Evidence, Fact, ForgetRequest, Mention
from agentd.core.failpoints import hit
from agentd.core.health import Problem
from agentd.core.ports import Clock, Eraser, ErasureStore, SearchableTexts
from agentd.core.text import plain
from agentd.core.turn import SessionKey
from agentd.memory.facts.candidates import Candidate, Near, OtherMention, Survey, words_of
from agentd.memory.facts.marking import Ask, Marker, narrow, passages, still_asking
from agentd.memory.facts.quotes import is_short

log = structlog.get_logger()

_NOTHING = Erasure()

Said = Callable[[SessionKey, int], Awaitable[StoredText | None]]
FindNear = Callable[[str], Awaitable[Sequence[Near]]]


class Traces:
    """Finds the traces of a fact that is to be forgotten: the words that state it by its evidence,
    and the texts that may state it in other words.

    `said` returns a row of a transcript, None if it is gone; `near` the lines most similar to a
    sentence. Methods raise StorageError, WorkspaceError.
    """

    def __init__(self, texts: Sequence[SearchableTexts], said: Said, near: FindNear | None) -> None:
        self._texts = tuple(texts)
        self._said = said
        self._near = near

    async def erasure_of(
        self,
        facts: Sequence[Fact],
        evidence: Mapping[str, Sequence[Evidence]],
        asked: Sequence[ForgetRequest] = (),
    ) -> Erasure:
        """Return what has to be erased for these facts, as far as known without a model. `asked`
        are requests that may state them.
        """
        several = [
            await self._of_fact(fact, evidence.get(fact.id, ()), asked)
            for fact in facts
            if fact.text
        ]
        return join_erasures(several)

    async def _of_fact(
        self, fact: Fact, evidence: Sequence[Evidence], asked: Sequence[ForgetRequest]
    ) -> Erasure:
        spoken = [one for one in evidence if one.session and one.seq]
        marks: list[PlacedWords] = []
        rows: list[str] = []
        for one in spoken:
            row = await self._said(one.session, one.seq)
            if row is None:
                continue
            if one.start < one.end and not one.is_context:
                marks += _marks_of_quote(row, one)
            else:
                rows.append(row.where)
        found = [await self._said(one.session, one.seq) for one in asked if one.seq]
        rows += (row.where for row in found if row is not None)
        quotes = tuple(dict.fromkeys(mark.span for mark in marks))
        since = min((one.at for one in spoken), default=None)
        value = fact.triple.value if fact.triple is not None else ""
        return Erasure(
            tuple(words for words in (fact.text, *quotes) if not is_short(words)),
            tuple(marks),
            ids=(fact.id,),
            sought=(
                UntracedFact(
                    fact.id,
                    fact.text,
                    value,
                    quotes,
                    tuple(dict.fromkeys(rows)),
                    since,
                    tuple(one.text for one in asked),
                    max((one.at for one in asked), default=None),
                ),
            ),
        )

    async def survey(self, erasure: Erasure, counts: Counter[str] | None = None) -> Survey:
        """Look through all texts for the facts of the erasure. `counts`, if given, gets how many
        texts of each place would be masked without a model.
        """
        near = {one.id: await self._nearest(one.text) for one in erasure.sought}
        quoted: dict[str, list[tuple[PlacedWords, datetime]]] = defaultdict(list)
        for mark in erasure.marks:
            if mark.start is not None and (row := await self._row(mark)) and row.at:
                quoted[row.text].append((mark, row.at))
        survey = Survey(erasure.sought, near, quoted)
        await self.look_through(survey, erasure, counts)
        if not survey.is_sure:  # an expression has only common words: read all texts
            survey = Survey(erasure.sought, near, quoted, is_thorough=True)
            if counts is not None:
                counts.clear()
            await self.look_through(survey, erasure, counts)
        return survey

    async def look_through(
        self, survey: Survey, erasure: Erasure = _NOTHING, counts: Counter[str] | None = None
    ) -> None:
        """Feed all texts to a survey."""
        for source in self._texts:
            async for texts in source.texts(survey):
                await asyncio.to_thread(survey.add, texts)
                if counts is not None:
                    found = await asyncio.to_thread(_masked, texts, erasure, source.name)
                    counts.update({source.name: len(found)} if found else {})

    async def sentences(
        self, erasure: Erasure, counts: Counter[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the passages that would be masked without a model, each with its places. `counts`
        gets how many texts of each place have some.
        """
        found: dict[str, list[str]] = {}
        for source in self._texts:
            async for texts in source.texts():
                for one in await asyncio.to_thread(_masked, texts, erasure, source.name):
                    counts[source.name] += 1
                    for start, end in erasure.found(one.text, one.where, begins=0):
                        places = found.setdefault(one.text[start:end], [])
                        places += [one.where] if one.where not in places else []
        return found

    async def _nearest(self, text: str) -> Sequence[Near]:
        if self._near is None:
            return ()
        try:
            return await self._near(text)
        except AgentdError as error:
            log.warning("forgetting_without_search", reason=error.reason)
            return ()

    async def _row(self, mark: PlacedWords) -> StoredText | None:
        path, _, seq = mark.where.rpartition(":")
        session = path.removeprefix("sessions/").removesuffix(".jsonl")
        return await self._said(SessionKey(session), int(seq)) if seq.isdecimal() else None


def marks_of(shown: Sequence[OtherMention], numbers: Sequence[int]) -> tuple[PlacedWords, ...]:
    """Return the marks of the mentions with these numbers. Raises NotFound."""
    known = {one.mention.n: one for one in shown}
    if missing := [n for n in numbers if n not in known]:
        raise NotFound(
            f"no mention has the number {missing[0]}",
            cure="look at the numbers again with --dry-run",
        )
    return tuple(chain.from_iterable(known[n].marks for n in numbers))


def _marks_of_quote(row: StoredText, evidence: Evidence) -> Iterator[PlacedWords]:
    """Yield marks for the quoted words, without parts that were masked before."""
    at = evidence.start
    for words in row.text[evidence.start : evidence.end].split(MASK):
        if any(unicodedata.category(letter)[0] not in "PZC" for letter in words):
            yield PlacedWords(row.where, words, at)
        at += len(words) + len(MASK)


def _masked(texts: Sequence[StoredText], erasure: Erasure, place: str) -> list[StoredText]:
    """Return those of the texts that would be masked without a model."""
    return [
        one
        for one in texts
        if not (one.by_user and place == "notes") and erasure.found(one.text, one.where, begins=0)
    ]


_AGAIN = 5.0  # seconds until a failed place is tried again
_TURN = 60.0  # seconds until the next check whether a turn has ended
_PATIENCE = 600.0  # longest time for one place, in seconds
_LEAST = 3  # least letters and digits of a text that may be erased
# A word in more than 20 texts, and in more than 1 of 20 of all, is too common to be erased.
_SHARE, _FEW = 20, 20
_SHOWN = 50  # places named in a report
_SURVEY = "texts"  # the name under which a failed survey is listed among the failed places
_UNMARKED_CURE = (
    "nothing: a model is asked again by itself; or erase words with `agentd memory forget TEXT`"
)

Copies = Callable[[Erasure], Awaitable[Sequence[str]]]


class ForgottenPlace(Struct, frozen=True):
    """An Eraser made of a name and a function."""

    name: str
    work: Callable[[Erasure], Awaitable[int]]

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser."""
        return await self.work(erasure)


class Forgetting:
    """Erases what facts stated, or any text, in all places in order. `run` finishes in the
    background what earlier tries left over.

    `ask` sends a system prompt and a text to a model, and raises AgentdError; `said` returns a row
    of a transcript, None if it is gone; `near` the lines most similar to a sentence; `copies`
    returns backups out of reach that contain words; `tell` is called for each session that was told
    to wait, once everything is erased.
    """

    def __init__(
        self,
        store: ErasureStore,
        places: Sequence[Eraser],
        clock: Clock,
        *,
        ask: Ask | None,
        texts: Sequence[SearchableTexts],
        said: Said,
        copies: Copies,
        near: FindNear | None = None,
        tell: Callable[[SessionKey], None] | None = None,
    ) -> None:
        self._store = store
        self._tell = tell
        self._asking: set[SessionKey] = set()  # sessions that asked for what is to be done,
        self._waiting: set[SessionKey] = set()  # and those that were told to wait
        self._ended_at: datetime | None = None
        self._places = tuple(places)
        self._clock = clock
        self._marker = Marker(ask, clock)
        self._traces = Traces(texts, said, near)
        self._copies = copies
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._left: dict[str, Exception] = {}  # failed places, with the error
        self._narrowed: set[int] = set()  # numbers of narrowed erasures
        self._unmarked: tuple[str, ...] = ()  # places of texts that no model has judged
        self._shown: tuple[tuple[str, ...], tuple[OtherMention, ...]] = ((), ())  # the last preview
        self._is_due = True  # False once nothing is left
        self._next = 0.0  # monotonic time of the next try
        self._is_touched = False  # whether a turn ended since the last try began

    async def begin(
        self,
        facts: Sequence[Fact],
        evidence: Mapping[str, Sequence[Evidence]],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> None:
        """Record durably what has to be erased for these facts, before their words are deleted.
        `also` are numbers of mentions in the preview, which are erased, too, as is what the
        requests in `asked` say of the facts. Raises NotFound for an unknown number, StorageError,
        WorkspaceError.
        """
        erasure = await self._traces.erasure_of(facts, evidence, asked)
        if also:
            ids, shown = self._shown
            if ids != erasure.ids:
                shown = await self._mentions((await self._narrow(erasure))[0])
            named = marks_of(shown, also)
            erasure = replace(erasure, marks=(*erasure.marks, *named))
        if erasure != Erasure():
            await self._begin(erasure)
            self._asking |= {one.session for one in asked if one.session}

    async def carry_out(self) -> ErasureReport:
        """Carry out all erasures that were begun. Raises StorageError; a failed place is done
        later.
        """
        async with self._lock:
            return await self._carry_out()

    async def preview(
        self, facts: Sequence[Fact], evidence: Mapping[str, Sequence[Evidence]]
    ) -> ErasureReport:
        """Return what forgetting these facts would do, as far as known before a model has judged
        agentd's texts. Raises StorageError, WorkspaceError.
        """
        whole = await self._traces.erasure_of(facts, evidence)
        erasure, besides = await self._narrow(whole)
        counts: Counter[str] = Counter()
        survey = await self._traces.survey(erasure, counts)
        also = await asyncio.to_thread(survey.mentions, erasure)
        self._shown = erasure.ids, also
        return ErasureReport(
            dict(counts),
            tuple(one.mention for one in also),
            backups=await self._backups(erasure),
            more=survey.more,
            besides=besides,
        )

    async def erase_text(self, text: str) -> ErasureReport:
        """Erase every sentence that contains these words, whatever the facts are. Raises
        InvalidRequest for a text that is too short or too common, StorageError, WorkspaceError.
        """
        await self._require_telling(text)
        await self._begin(Erasure(sentences=(text,)))
        return await self.carry_out()

    async def preview_text(self, text: str) -> ErasureReport:
        """Return what `erase_text` would erase: the sentences, and in how many texts of each place
        they stand. Raises what it raises.
        """
        await self._require_telling(text)
        erasure = Erasure(sentences=(text,))
        counts: Counter[str] = Counter()
        found = await self._traces.sentences(erasure, counts)
        goes = tuple(
            Mention(n, places[0], sentence, tuple(places[1:]))
            for n, (sentence, places) in enumerate(islice(found.items(), _SHOWN), start=1)
        )
        more = len(found) - len(goes)
        return ErasureReport(
            dict(counts), backups=await self._backups(erasure), more=more, goes=goes
        )

    async def _require_telling(self, text: str) -> None:
        """Raise InvalidRequest if too much would be erased by a text."""
        words = words_of(text)
        survey = Survey([UntracedFact("", text)], is_thorough=True)
        if len(words) == 1:
            await self._traces.look_through(survey)
        is_common = len(words) == 1 and survey.counts.total() > max(_FEW, survey.size // _SHARE)
        if len("".join(filter(str.isalnum, plain(text)))) < _LEAST or is_common:
            raise InvalidRequest(
                f"too much would be erased by {text!r}", cure="name it by more words"
            )

    async def run(self) -> None:
        """Finish what an earlier run or a failure left over, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._work())

    def touch(self, _: SessionKey) -> None:
        """Note that a turn has ended, for which an erasure may be waiting."""
        self._is_touched = True
        if self._left:
            self._next = 0.0
            self._wake.set()

    def status(self) -> dict[str, Any]:
        """Return `{erasing, erased}`: the places still to be erased, and when everything was last
        erased (ISO, or None).
        """
        left = (*self._left, *self._unmarked[:_SHOWN]) if self._is_due else ()
        ended = self._ended_at
        return {"erasing": list(left), "erased": ended.isoformat() if ended else None}

    def problems(self) -> tuple[Problem, ...]:
        """Return the places that fail, and the texts that no model has judged. Waiting for a turn
        is no problem.
        """
        failed = {n: e for n, e in self._left.items() if not isinstance(e, Busy)}
        if failed:
            why = next(iter(failed.values()))
            told = why.message if isinstance(why, AgentdError) else type(why).__name__
            cure = why.cure if isinstance(why, AgentdError) else ""
            text = f"what was forgotten is still to be erased from {', '.join(failed)}: {told}"
            return (
                Problem("erasure_pending", text, cure or "it is tried again; see `agentd logs`"),
            )
        if self._unmarked and self._marker.fault is not None:
            count = len(self._unmarked)
            places = "one text" if count == 1 else f"{count} texts"
            text = f"{places} may still say what was forgotten: {self._marker.fault.message}"
            return (Problem("erasure_pending", text, _UNMARKED_CURE),)
        return ()

    async def _begin(self, erasure: Erasure) -> None:
        """Store an erasure. `run` carries it out in a while, unless the caller does so."""
        await self._store.begin(erasure)
        self._is_due = True
        self._next = self._clock.monotonic() + _AGAIN
        hit("erasure.begun")

    async def _narrow(self, erasure: Erasure) -> tuple[Erasure, tuple[str, ...]]:
        """Return the erasure narrowed to the words that state the facts, and the places where that
        was impossible.
        """
        texts = await asyncio.to_thread(passages, erasure)
        if not texts:
            return erasure, ()
        marks = await self._marker.within(erasure.sought, texts)
        return await asyncio.to_thread(narrow, erasure, marks)

    async def _mentions(self, erasure: Erasure) -> tuple[OtherMention, ...]:
        survey = await self._traces.survey(erasure)
        return await asyncio.to_thread(survey.mentions, erasure)

    async def _narrow_new(
        self, begun: Mapping[int, Erasure]
    ) -> tuple[Mapping[int, Erasure], tuple[str, ...]]:
        """Narrow each new erasure once and durably; return the open erasures, and the places where
        whole quotes are erased. A later try would find less of the text left.
        """
        besides: list[str] = []
        for number in begun.keys() - self._narrowed:
            less, more = await self._narrow(begun[number])
            if less != begun[number]:
                await self._store.update(number, less)
            self._narrowed.add(number)
            besides += more
        return await self._store.open(), tuple(besides)

    async def _carry_out(
        self, done: Collection[str] = (), erased: Mapping[int, Erasure] | None = None
    ) -> ErasureReport:
        """Erase everywhere; the places in `done` only if there is more to erase than what was
        `erased` there. Raises StorageError.
        """
        self._is_touched = False
        asking = frozenset(self._asking)
        begun = await self._store.open()
        self._is_due = bool(begun)
        if not begun:
            self._left.clear()
            return ErasureReport()
        begun, besides = await self._narrow_new(begun)
        survey, candidates, left = await self._mark(begun)
        # One that was begun meanwhile is neither narrowed nor marked yet, and has its own turn.
        known = {n: one for n, one in (await self._store.open()).items() if n in begun}
        is_more, begun = erased != known, known
        erasure = join_erasures(begun.values())
        places = [one for one in self._places if is_more or one.name not in done]
        counts = await self._visit(places, erasure)
        await asyncio.to_thread(self._marker.masked, candidates, erasure)
        also: tuple[OtherMention, ...] = ()
        if survey is not None:
            also = await asyncio.to_thread(survey.mentions, erasure, is_done=True)
        self._unmarked = tuple(dict.fromkeys(chain.from_iterable(one.where for one in left)))
        told = ErasureReport(
            counts,
            tuple(one.mention for one in also),
            backups=await self._backups(erasure),
            more=survey.more if survey is not None else 0,
            besides=besides,
        )
        return await self._close(begun, told, asking)

    async def _mark(
        self, begun: Mapping[int, Erasure]
    ) -> tuple[Survey | None, tuple[Candidate, ...], tuple[Candidate, ...]]:
        """Find other words that state the facts, and store their marks durably. Return the survey
        (None if it failed), the candidates, and those left unjudged.
        """
        erasure = join_erasures(begun.values())
        try:
            survey = await self._traces.survey(erasure)
        except (AgentdError, OSError) as error:
            # What is known already is erased all the same.
            log.warning("erasing_not_surveyed", error=type(error).__name__)
            self._left[_SURVEY] = error
            return None, (), ()
        self._left.pop(_SURVEY, None)
        candidates = await asyncio.to_thread(survey.candidates, erasure)
        marks, left = await self._marker.marks(erasure.sought, candidates)
        found = await asyncio.to_thread(survey.believed, marks)
        known = replace(erasure, marks=(*erasure.marks, *survey.twins, *found))
        asking = await asyncio.to_thread(
            list, still_asking(survey.asking.values(), known, survey.telling)
        )
        new = tuple(m for m in (*known.marks, *asking) if m not in erasure.marks)
        if new:
            number, first = next(iter(begun.items()))
            await self._store.update(number, replace(first, marks=(*first.marks, *new)))
        return survey, candidates, left

    async def _visit(self, places: Sequence[Eraser], erasure: Erasure) -> dict[str, int]:
        """Erase in each place; return how many texts each had, and record failures."""
        counts: dict[str, int] = {}
        for place in places:
            try:
                async with asyncio.timeout(_PATIENCE):
                    count = await place.erase(erasure)
            except Exception as error:
                # A failure must not hold up the other places; this one is done again later.
                if not isinstance(error, Busy):
                    log.exception("erasing_failed", place=place.name)
                self._left[place.name] = error
            else:
                self._left.pop(place.name, None)
                counts[place.name] = count
            hit("erasure.place_done")
        return {name: count for name, count in counts.items() if count}

    async def _close(
        self, begun: Mapping[int, Erasure], report: ErasureReport, asking: frozenset[SessionKey]
    ) -> ErasureReport:
        """End the erasures if nothing is left of them; return the report with what is left. Those
        that were begun meanwhile stay due. `asking` are the sessions that asked for these.
        """
        self._asking -= asking
        if not self._left and not self._unmarked:
            hit("erasure.done")
            await self._store.end(begun)
            self._is_due = bool(await self._store.open())
            self._marker.forget()
            self._narrowed.clear()
            self._shown = ((), ())
            self._ended_at = self._clock.now()
            if self._tell is not None:
                for session in self._waiting:
                    self._tell(session)
            self._waiting.clear()
        else:
            self._waiting |= asking
        self._rest()
        pending = (*self._left, *self._unmarked[:_SHOWN])
        log.info(
            "erased", places=report.places, left=sorted(self._left), unmarked=len(self._unmarked)
        )
        waits = bool(self._left) and not self._unmarked and self._are_waiting()
        return replace(report, pending=pending, waits=waits)

    async def _backups(self, erasure: Erasure) -> tuple[str, ...]:
        """Return backups that still contain the words; empty if they cannot be listed, which must
        not prevent forgetting.
        """
        told = chain.from_iterable((one.text, one.value, *one.quotes) for one in erasure.sought)
        words = Erasure(spans=(*filter(None, told), *erasure.sentences))
        try:
            return tuple(await self._copies(words))
        except (AgentdError, OSError) as error:
            log.warning("copies_not_listed", error=type(error).__name__)
            return ()

    async def _retry(self) -> None:
        """Try the failed places first; once they succeed, erase everywhere again, since other
        places may have been written to.
        """
        if self._clock.monotonic() < self._next or not self._is_due:
            return
        async with self._lock:
            if not self._left and self._unmarked and self._marker.is_resting:
                return
            late, erased = [one for one in self._places if one.name in self._left], None
            if late:
                self._is_touched = False
                erased = await self._store.open()
                await self._visit(late, join_erasures(erased.values()))
                if any(place.name in self._left for place in late):
                    self._rest()
                    return
            await self._carry_out([place.name for place in late], erased)

    def _are_waiting(self) -> bool:
        """Whether all places left only wait for a turn to end."""
        return all(isinstance(error, Busy) for error in self._left.values())

    def _rest(self) -> None:
        """Set the time of the next try; at once if a turn has ended meanwhile."""
        waits = self._are_waiting()
        pause = 0.0 if waits and self._is_touched else _TURN if waits else _AGAIN
        self._next = self._clock.monotonic() + pause
        if self._left and not pause:
            self._wake.set()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(_AGAIN)
            if self._is_due:
                self._wake.set()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._retry()
            except AgentdError as error:
                # The words are safe in the store, and the next tick tries again.
                log.warning("erasing_failed", reason=error.reason)
            await self._wake.wait()
