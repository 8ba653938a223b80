"""Reads the user's messages and changes the facts accordingly: one request to a model per passage.

The model reads, but only the user's own words prove: an item of its answer counts if its quote is
in a clean message of the passage.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, zip_longest
from operator import attrgetter

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import ProviderError
from agentd.core.fact import (
    Category,
    Evidence,
    Fact,
    FactOperation,
    FactSource,
    FactWrite,
    OperationResult,
)
from agentd.core.message import Text
from agentd.core.paths import prompt
from agentd.core.ports import Clock, Facts, FactStore, Transcripts
from agentd.core.spans import Span, shift_spans
from agentd.core.text import sentences
from agentd.core.transcript import Row, RowRole, opens_turn
from agentd.core.turn import Origin, SessionKey
from agentd.engine import tokens
from agentd.engine.completion import Completions
from agentd.memory.facts import wire
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.model_answer import is_list
from agentd.memory.facts.quotation import quoted_spans
from agentd.memory.facts.wire import SpokenMessage, WireItem
from agentd.memory.facts.withheld import secret_spans

log = structlog.get_logger()


_INSTRUCTIONS = prompt("learning")
_MAX_TOKENS = 4_096
_PAGE = 200  # rows read at once
_SHOWN_TOKENS = 4_000  # tokens of facts in a request: about 350 facts
_NEAREST = 200  # facts searched for each message, if not all can be shown
_WORD = re.compile(r"\w+")
_ID_TOKENS = 10  # id and date, beside the sentence
_NEWEST = 10  # newest facts, always shown: corrections often concern what was just said
_creation = attrgetter("noted_at", "id")


class Passage(Struct, frozen=True):
    """The next rows of a session to be read, up to row `last`. `spoken` is empty if the user says
    nothing in them; it may begin with the agent's message before them. `withheld` counts sentences
    that are not shown because they reveal a secret.
    """

    session: SessionKey
    first: int
    last: int
    spoken: tuple[SpokenMessage, ...] = ()
    withheld: int = 0

    @property
    def user_messages(self) -> int:
        """How many of its messages the user wrote."""
        return _user_messages(self.spoken)


class PassageReader:
    """Turns messages into changes of the facts. The mark of a session moves in the same transaction
    as the changes.
    """

    def __init__(
        self,
        sessions: Transcripts,
        store: FactStore,
        facts: Facts,
        calls: Completions,
        clock: Clock,
        settings: FactsSettings,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._facts = facts
        self._calls = calls
        self._clock = clock
        self._settings = settings
        self._model = settings.extraction_model or calls.cheap_model
        self._withheld = 0
        self._malformed = 0

    @property
    def malformed(self) -> int:
        """How many items of answers were unusable or too many, since the start."""
        return self._malformed

    @property
    def withheld(self) -> int:
        """How many sentences with secrets were not shown to the model, since the start."""
        return self._withheld

    async def next(self, session: SessionKey, most: int | None = None) -> Passage | None:
        """Return the next passage after the mark, of at most so many messages of the user
        (`batch_messages` unless given); None if there is none. Raises StorageError, NotFound.
        """
        most = most or self._settings.batch_messages
        if not await self._sessions.exists(session):
            return None
        mark = (await self._store.marks()).get(session, 0)
        rows = await self._sessions.rows(session, mark + 1, _PAGE)
        if not rows:
            return None
        taken: list[Row] = []
        messages, room = 0, self._settings.batch_tokens
        for row in rows:
            messages += opens_turn(row)
            shown = wire.USER_CHARS if row.role is RowRole.USER else wire.AGENT_CHARS
            room -= tokens.of_text(row.text[:shown])
            if taken and opens_turn(row) and (room < 0 or messages > most):
                break
            taken.append(row)
        spoken = await asyncio.to_thread(spoken_in, session, taken)
        withheld = sum(one.withheld for one in spoken)
        if not any(one.is_user and not one.is_secret for one in spoken):
            spoken = ()
        elif spoken[0].is_user and (before := await self._before(session, taken[0].seq)):
            spoken = (before, *spoken)
        return Passage(session, taken[0].seq, taken[-1].seq, spoken, withheld)

    async def read(self, passage: Passage) -> tuple[OperationResult, ...] | None:
        """Learn from the passage, and move the mark to its end; return what came of it. None if the
        answer was cut, and what the later messages say may be missing from it: then nothing is
        learned and the mark is unchanged. For a single message a cut answer counts as it is.

        Raises ProviderError, TimeoutError, ShuttingDown, WorkspaceError, StorageError; the mark is
        then unchanged.
        """
        marks = {passage.session: passage.last}
        operations: tuple[FactOperation, ...] = ()
        if passage.spoken:
            operations, is_cut = await self._read_passage(
                passage.session, passage.spoken, FactSource.EXTRACTED
            )
            if is_cut and passage.user_messages > 1:
                return None
        if not await self._sessions.exists(passage.session):
            return ()  # the session was deleted meanwhile
        learned = await self._facts.learn(operations, session=passage.session, marks=marks)
        self._withheld += passage.withheld
        return learned

    async def read_now(
        self,
        spoken: Sequence[SpokenMessage],
        session: SessionKey,
        asked: Evidence,
        *,
        hinted: Sequence[str] = (),
        category: Category | None = None,
    ) -> tuple[OperationResult, ...]:
        """Learn, as explicit facts, what the user has asked to have remembered with the words
        `asked`. `hinted` are ids of facts that the words may concern. Raises what `read` raises.
        """
        if not any(one.is_user and not one.is_secret for one in spoken):
            return ()
        found, _ = await self._read_passage(session, spoken, FactSource.EXPLICIT, hinted, asked)
        proven = [one for one in found if one.is_proven]
        if category is not None:
            proven = [replace(one, category=category) for one in proven]
        return await self._facts.learn(proven, session=session) if proven else ()

    async def skip(self, passage: Passage) -> None:
        """Move the mark to the passage's end without reading it. Raises StorageError,
        WorkspaceError.
        """
        await self._facts.learn((), marks={passage.session: passage.last})

    async def forked(self, source: SessionKey, copy: SessionKey) -> None:
        """Mark in the copy what was already read in the source. Raises StorageError."""
        if mark := (await self._store.marks()).get(source):
            await self._facts.learn((), marks={copy: mark})

    async def locate_evidence(self) -> int:
        """Find the words of evidence for which only the row is known, as in facts of earlier
        versions: the sentence that shares most words with the fact. Return how many were found.
        Raises StorageError, WorkspaceError.
        """
        facts = {fact.id: fact for fact in await self._facts.all() if fact.is_alive}
        found: list[Evidence] = []
        for fact_id, each in (await self._store.evidence(list(facts))).items():
            for one in each:
                if one.session and not one.end and await self._sessions.exists(one.session):
                    rows = await self._sessions.rows(one.session, one.seq, 1)
                    text = rows[0].text if rows and rows[0].seq == one.seq else ""
                    if span := _sentence_like(facts[fact_id].text, text):
                        found.append(replace(one, start=span[0], end=span[1]))
        if found:
            await self._store.write(FactWrite(evidence=tuple(found)))
        return len(found)

    async def unread(self) -> frozenset[SessionKey]:
        """Return the sessions that have rows after their mark. Raises StorageError."""
        marks = await self._store.marks()
        counts = await self._sessions.row_counts()
        return frozenset(one for one, rows in counts.items() if rows > marks.get(one, 0))

    async def _read_passage(
        self,
        session: SessionKey,
        spoken: Sequence[SpokenMessage],
        source: FactSource,
        hinted: Sequence[str] = (),
        asked: Evidence | None = None,
    ) -> tuple[tuple[FactOperation, ...], bool]:
        """Return the operations that the model reads from the messages, with their evidence, and
        whether its answer was cut. If some messages were erased meanwhile, the answer is discarded
        and the model reads the rest.
        """
        items, dropped, shown, is_cut = await self._ask_model(session, spoken, hinted)
        while (now := await self._as_they_stand(spoken)) != list(spoken):
            spoken = now
            if not any(one.is_user for one in spoken):
                return (), False
            items, dropped, shown, is_cut = await self._ask_model(session, spoken, hinted)
        zone = self._clock.zone
        found = await asyncio.to_thread(
            lambda: tuple(wire.operations(items, spoken, source, zone, asked))
        )
        log.info(
            "facts_read",
            session=session,
            messages=len(spoken),
            shown=shown,
            found=len(found),
            unproven=sum(not operation.is_proven for operation in found),
            malformed=dropped,
            cut=is_cut,
        )
        return found, is_cut

    async def _ask_model(
        self, session: SessionKey, spoken: Sequence[SpokenMessage], hinted: Sequence[str]
    ) -> tuple[tuple[WireItem, ...], int, int, bool]:
        """Return the items of the model's answer, how many objects were unusable, how many facts it
        was shown, and whether the answer was cut.
        """
        known = await self._facts_for_model(spoken, hinted)
        async with asyncio.timeout(self._settings.extraction_timeout.total_seconds()):
            answer = await self._calls.ask(
                session,
                Origin.EXTRACTION,
                _INSTRUCTIONS,
                await asyncio.to_thread(wire.request, spoken, known, self._clock.zone),
                self._model,
                max_tokens=_MAX_TOKENS,
            )
        is_split = answer.is_cut and _user_messages(spoken) > 1
        if not is_split and not is_list(answer.text):
            raise ProviderError(
                "The model's answer holds no list of facts.",
                cure=(
                    "It is asked again later; if it stays, choose another [facts] extraction_model."
                ),
                kind="unreadable",
            )
        items, dropped = await asyncio.to_thread(wire.read, answer.text)
        dropped += answer.is_cut
        self._malformed += dropped
        return items, dropped, len(known), answer.is_cut

    async def _facts_for_model(
        self, spoken: Sequence[SpokenMessage], hinted: Sequence[str]
    ) -> list[Fact]:
        """Return the facts to show the model: all if they fit, else the hinted and the newest, then
        those nearest to each message in turn.
        """
        active = await self._facts.active()
        shown = _fitting(active)
        if len(shown) < len(active):
            near = [await self._facts.nearest(text, _NEAREST) for text in _questions(spoken)]
            in_turn = (fact for each in zip_longest(*near) for fact in each if fact is not None)
            held = {fact.id: fact for fact in active if fact.id in hinted} if hinted else {}
            first = (held[i] for i in hinted if i in held)
            shown = _fitting(chain(first, active[-_NEWEST:], in_turn))
        return sorted(shown.values(), key=_creation)

    async def _before(self, session: SessionKey, first: int) -> SpokenMessage | None:
        """Return the agent's message just before a row, to which the row may be the answer."""
        rows = await self._sessions.rows(session, max(1, first - 4), 4) if first > 1 else ()
        spoken = [one for row in rows if row.seq < first and (one := _spoken(session, row))]
        return spoken[-1] if spoken and not spoken[-1].is_user else None

    async def _as_they_stand(self, spoken: Sequence[SpokenMessage]) -> list[SpokenMessage]:
        """Return the messages that still exist, in their present form."""
        now: list[SpokenMessage] = []
        for one in spoken:
            if not one.seq:
                now.append(one)
            elif await self._sessions.exists(one.session):
                rows = await self._sessions.rows(one.session, one.seq, 1)
                there = [row for row in rows if row.seq == one.seq]
                now += await asyncio.to_thread(spoken_in, one.session, there)
        return now


def spoken_in(session: SessionKey, rows: Sequence[Row]) -> tuple[SpokenMessage, ...]:
    """Return the messages in rows, in order: words of user and agent, without tool calls and
    results.
    """
    return tuple(one for row in rows if (one := _spoken(session, row)) is not None)


def _spoken(session: SessionKey, row: Row) -> SpokenMessage | None:
    is_user = opens_turn(row)
    if not (is_user or row.role is RowRole.ASSISTANT) or not row.text.strip():
        return None
    whole = ((0, len(row.text)),)
    if not is_user:
        hidden = whole if row.source.tainted else ()
        return SpokenMessage(session, row.seq, row.at, row.text, False, not hidden, hidden=hidden)
    secret = secret_spans(row.text)
    marked: list[Span] = [*secret]
    offset = 0
    for block in row.blocks:
        if isinstance(block, Text):
            marked += shift_spans(block.quoted, offset)
            offset += len(block.text)
    is_clean = row.source.is_owners_own
    return SpokenMessage(
        session,
        row.seq,
        row.at,
        row.text,
        True,
        is_clean,
        tuple(quoted_spans(row.text, marked)),
        tuple(marked) if is_clean else whole,
        len(secret),
    )


def _user_messages(spoken: Sequence[SpokenMessage]) -> int:
    return sum(one.is_user for one in spoken)


def _sentence_like(fact: str, text: str) -> Span | None:
    """Return the span of the sentence that shares most words with the fact, at least two."""
    wanted = frozenset(_WORD.findall(fact.casefold()))
    best, most, at = None, 1, 0
    for sentence in sentences(text):
        start = text.index(sentence, at)
        at = start + len(sentence)
        shared = len(wanted.intersection(_WORD.findall(sentence.casefold())))
        if shared > most:
            best, most = (start, at), shared
    return best


def _questions(spoken: Sequence[SpokenMessage]) -> list[str]:
    """Return the user's messages, each also together with the agent's message before it, since a
    bare answer says little.
    """
    texts = []
    for before, one in pairwise((None, *spoken)):
        if one is not None and one.is_user:
            texts.append(one.text)
            if before is not None and not before.is_user:
                texts.append(f"{before.text[-wire.AGENT_CHARS :]}\n{one.text}")
    return texts


def _fitting(facts: Iterable[Fact]) -> dict[str, Fact]:
    """Return the first facts that fit into a request, by id."""
    found: dict[str, Fact] = {}
    room = _SHOWN_TOKENS
    for fact in facts:
        if fact.id not in found:
            room -= _weight(fact)
            if room < 0:
                break
            found[fact.id] = fact
    return found


def _weight(fact: Fact) -> int:
    return tokens.of_text(fact.text) + _ID_TOKENS
