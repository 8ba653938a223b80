"""Reads one passage of a session after the other, from the durable mark on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from agentd.domain.erasure import Needles
from agentd.domain.fact import Learned, Provenance, Statement
from agentd.domain.message import Text, ToolResult, ToolUse
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import Origin, SessionKey
from agentd.engine.prompt import fence
from agentd.engine.sidecall import SideCall
from agentd.facts.asked import explicit_besides, explicit_statement
from agentd.facts.extraction.grounding import denials, ground
from agentd.facts.extraction.parsing import parse
from agentd.facts.extraction.reading import Said, stated, weight
from agentd.facts.settings import FactsSettings
from agentd.paths import prompt
from agentd.ports import Clock, Facts, FactStore, SessionStore
from agentd.statements.telling import share_said

_INSTRUCTIONS = prompt("extraction")
_ASK = "List the facts now."
_MAX_TOKENS = 2048
_LOOKED_AT = 100  # rows behind a request in which its turn's tool calls are looked for
_REMEMBER = "remember"  # the tool with which a model keeps what it was asked to

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Passage:
    """The next rows in which the user speaks. `messages` are to be read, `requests` ask outright."""

    session: SessionKey
    first: int
    last: int
    messages: tuple[Said, ...]
    requests: tuple[Said, ...]


class Reader:
    """Turns what the user said into facts. The mark moves with the facts, in their transaction."""

    def __init__(
        self,
        sessions: SessionStore,
        store: FactStore,
        facts: Facts,
        calls: SideCall,
        clock: Clock,
        settings: FactsSettings,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._facts = facts
        self._calls = calls
        self._clock = clock
        self._settings = settings
        self._heard: dict[SessionKey, int] = {}  # up to where requests were kept in this run

    async def next(self, session: SessionKey) -> Passage | None:
        """What comes behind the mark; None if the user has said nothing since. Raises StorageError."""
        mark = (await self._store.marks()).get(session, 0)
        rows = await self._sessions.said(session, mark, self._settings.batch_messages)
        said: list[Said] = []
        room = self._settings.batch_tokens
        for one in await self._stated(rows):
            room -= weight(one)
            if said and room < 0:
                break
            said.append(one)
        if not said:
            return None
        messages = tuple(one for one in said if one.text)
        requests = tuple(one for one in said if one.request is not None)
        return Passage(session, said[0].seq, said[-1].seq, messages, requests)

    async def read(self, passage: Passage) -> None:
        """Learn what the passage says, and move the mark behind it.

        Raises ProviderError, TimeoutError, ShuttingDown, WorkspaceError, StorageError; the mark is
        then where it was.
        """
        statements: tuple[Statement, ...] = ()
        if passage.messages:
            async with asyncio.timeout(self._settings.extraction_timeout.total_seconds()):
                answer = await self._calls.ask(
                    passage.session,
                    Origin.EXTRACTION,
                    _INSTRUCTIONS,
                    self._shown(passage.messages),
                    self._settings.extraction_model,
                    max_tokens=_MAX_TOKENS,
                )
            statements = await self._grounded(passage, answer)
        heard = self._heard.get(passage.session, 0)
        asked = await self._asked(passage.session, [r for r in passage.requests if r.seq > heard])
        if not await self._sessions.said(passage.session, passage.first - 1, 1):
            return  # the session was deleted meanwhile
        await self._learn((*asked, *statements), {passage.session: passage.last})
        self._heard[passage.session] = max(heard, passage.last)

    async def skip(self, passage: Passage) -> None:
        """Move the mark behind the passage unread. Raises StorageError."""
        await self._store.save((), marks={passage.session: passage.last})

    async def hear(self, session: SessionKey) -> None:
        """Keep what the user has asked outright to be kept since this was last called, without a model.
        Raises WorkspaceError, StorageError.
        """
        heard = self._heard.get(session)
        if heard is None:
            heard = (await self._store.marks()).get(session, 0)
        while rows := await self._sessions.said(session, heard, self._settings.batch_messages):
            requests = [one for one in await self._stated(rows) if one.request is not None]
            if statements := await self._asked(session, requests):
                await self._learn(statements, {})
            heard = self._heard[session] = rows[-1].seq

    async def has_unread(self, session: SessionKey, words: str) -> bool:
        """Whether the user has said all telling words of this behind the mark, other than to have it
        forgotten. Raises StorageError.
        """
        after = (await self._store.marks()).get(session, 0)
        while rows := await self._sessions.said(session, after, self._settings.batch_messages):
            for one in await self._stated(rows):
                asked = one.request
                kept = asked.text if asked is not None and asked.kind == "remember" else one.text
                if share_said(words, kept) == 1.0:
                    return True
            after = rows[-1].seq
        return False

    def restart(self, session: SessionKey) -> None:
        """The session was deleted; its rows count from 1 again."""
        self._heard.pop(session, None)

    async def _stated(self, rows: Sequence[Row]) -> tuple[Said, ...]:
        """What the rows say, without what is being forgotten at the moment."""
        erased = tuple((await self._store.erasures()).values()) if rows else ()
        return tuple(stated(_masked(row, erased)) for row in rows)

    def _shown(self, messages: Sequence[Said]) -> str:
        zone = self._clock.zone
        shown = (
            fence(f"message {number}, {one.at.astimezone(zone):%Y-%m-%d}", one.text)
            for number, one in enumerate(messages, 1)
        )
        return "\n\n".join((*shown, _ASK))

    async def _grounded(self, passage: Passage, answer: str) -> tuple[Statement, ...]:
        """What the answer says that the messages say, too, as they stand now: the user may have
        forgotten some of it while the model was reading.
        """
        parsed = parse(answer)
        rows = await self._sessions.said(
            passage.session, passage.first - 1, self._settings.batch_messages
        )
        now = {one.seq: one for one in await self._stated(rows)}
        messages = [now.get(one.seq, Said(one.seq, one.at, "")) for one in passage.messages]
        found = ground(parsed.candidates, messages, passage.session)
        log.info(
            "facts_extracted",
            session=passage.session,
            first=passage.first,
            last=passage.last,
            messages=len(passage.messages),
            found=len(found.statements),
            unsaid=found.dropped,
            malformed=parsed.dropped,
            characters=len(answer),
        )
        return (*denials(messages, passage.session, self._clock.zone), *found.statements)

    async def _asked(self, session: SessionKey, requests: Sequence[Said]) -> list[Statement]:
        """Statements for what was asked to be kept, unless the model has kept it then."""
        zone = self._clock.zone
        found: list[Statement] = []
        for said in requests:
            if said.request is None or said.request.kind != "remember":
                continue
            if not await self._is_kept(session, said.seq):
                words, origin = said.request.text, Provenance(session, said.seq)
                today = said.at.astimezone(zone).date()
                found += explicit_besides(words, said.at, today, origin)
                found.append(explicit_statement(words, said.at, today, origin))
        return found

    async def _is_kept(self, session: SessionKey, seq: int) -> bool:
        """Whether a call of the tool that remembers went well in the turn that begins at this row."""
        calls: set[str] = set()
        for row in await self._sessions.rows(session, seq + 1, _LOOKED_AT):
            results = [block for block in row.blocks if isinstance(block, ToolResult)]
            if row.role is RowRole.USER and not results:
                break
            if any(r.tool_use_id in calls and not r.is_error for r in results):
                return True
            uses = (block for block in row.blocks if isinstance(block, ToolUse))
            calls |= {use.id for use in uses if use.name == _REMEMBER}
        return False

    async def _learn(
        self, statements: Sequence[Statement], marks: Mapping[SessionKey, int]
    ) -> None:
        if not statements:
            await self._store.save((), marks=marks)
            return
        learned = await self._facts.learn(statements, marks=marks)
        log.info("facts_learned", **_counted(learned))


def _masked(row: Row, erased: Sequence[Needles]) -> Row:
    """The row without words that are about to be erased."""
    if not erased:
        return row
    text = row.text
    for needles in erased:
        text = needles.masked(text)
    return replace(row, blocks=(Text(text),))


def _counted(learned: Sequence[Learned]) -> dict[str, int]:
    """What became of statements, for the log."""
    words = [one.reason or ("new" if one.is_new else "known") for one in learned]
    return {word: words.count(word) for word in sorted(set(words))}
