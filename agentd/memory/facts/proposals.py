"""Proposes lines for MEMORY.md and USER.md. Nothing is written without the user's consent.

Proposals follow only from the facts, the times they were said, and the files. The user accepts the
exact bytes that were shown: if the file has changed since, the new proposal is shown instead.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Literal, Protocol

import structlog
from msgspec import Struct

from agentd.core.errors import FileMissing, NotFound
from agentd.core.fact import NO_SESSION, Category, Evidence, Fact, FactSource, FactStatus
from agentd.core.ports import Clock, FactStore, ProposalStore, Workspace
from agentd.core.screening.scanner import Suspicion, scan_change
from agentd.core.text import sentences
from agentd.core.tool import FileAction
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import OWNER, FileView, Reader
from agentd.memory.facts.known import Known, comparable

log = structlog.get_logger()

MEMORY, USER = "MEMORY.md", "USER.md"
Outcome = Literal["accepted", "rejected", "changed", "too_long"]

_PATHS = {
    Category.PERSONAL: USER,
    Category.PREFERENCE: USER,
    Category.INSTRUCTION: USER,
    Category.PROJECT: MEMORY,
    Category.DECISION: MEMORY,
    Category.OUTCOME: MEMORY,
}
_TIMES = 3  # how often a fact must have been said to be proposed
_TIMES_ASKED = 2  # the same for a fact that the user asked to have remembered
_DISTINCT = 2  # on how many different days, or in how many sessions, it must have been said
_LONGEST = 512  # characters of a line
# List marks, quotes and headings before a line's own words.
_MARK = re.compile(r"\s*(?:[-*+>]\s+|#+\s+|\d+[.)]\s+)*(?:\[[ xX]\]\s+)?")
_READER = Reader(SessionKey("proposals"), SessionKind.OWNER)


class ProposalBook(Protocol):
    """The facts that proposals are made of."""

    async def all(self) -> tuple[Fact, ...]:
        """Return every fact."""

    async def parked(self) -> Sequence[Fact]:
        """Return the facts that the user may want to have forgotten."""


class StatementCounts(Struct, frozen=True):
    """How often a fact was said, when first and last, and in which sessions."""

    times: int
    first: datetime
    last: datetime
    sessions: tuple[SessionKey, ...]

    def as_json(self) -> dict[str, Any]:
        """The shape in answers of commands."""
        return {
            "times": self.times,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "sessions": list(self.sessions),
        }


class _WantedLine(Struct, frozen=True):
    """A line that a file should have: in place of the line of the fact `instead_of`, or at the end.
    If the file has it already, only the old line is to be deleted.
    """

    fact: Fact
    path: str
    sayings: StatementCounts
    instead_of: Fact | None = None
    is_said: bool = False


class Proposal(Struct, frozen=True):
    """A change of a file for a fact. `digest` identifies exactly this change, and is what the user
    accepts. `replaces` is the fact whose line is replaced; `problem` says why the change cannot be
    made.
    """

    id: str
    path: str
    text: str
    diff: str
    digest: str
    sayings: StatementCounts
    before: str  # the digest of the file
    after: str  # the file as it would be
    replaces: str = ""
    warnings: tuple[Suspicion, ...] = ()
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """The shape in `agentd memory proposals`."""
        return {
            "id": self.id,
            "path": self.path,
            "text": self.text,
            "diff": self.diff,
            "digest": self.digest,
            "evidence": self.sayings.as_json(),
            "replaces": self.replaces or None,
            "warnings": [suspicion.as_json() for suspicion in self.warnings],
            "problem": self.problem,
        }


class AnsweredProposal(Struct, frozen=True):
    """The outcome of an answer, and the proposal in its present state."""

    proposal: Proposal
    outcome: Outcome


class Proposals:
    """Proposals for the files that every prompt includes. `cap` is how many characters of a file
    prompts include.
    """

    def __init__(
        self,
        book: ProposalBook,
        store: FactStore,
        answers: ProposalStore,
        workspace: Workspace,
        clock: Clock,
        cap: int,
    ) -> None:
        self._book = book
        self._store = store
        self._answers = answers
        self._workspace = workspace
        self._clock = clock
        self._cap = cap
        self._shown: dict[str, str] = {}  # the digest of each proposal as it was shown last

    async def all(self) -> tuple[Proposal, ...]:
        """Return the open proposals, which count as shown then: first those for outdated lines,
        then by how often the fact was said. Raises WorkspaceError, StorageError.
        """
        parked = {fact.id for fact in await self._book.parked()}
        facts = [fact for fact in await self._book.all() if fact.id not in parked]
        active = [fact.id for fact in facts if fact.is_active]
        state = _State(
            await asyncio.to_thread(Known.of, facts),
            await self._store.evidence(active) if active else {},
            await self._answers.answers(),
            {path: await self._view(path) for path in (USER, MEMORY)},
            self._clock.zone,
        )
        proposals = await asyncio.to_thread(self._build, state)
        self._shown = {proposal.id: proposal.digest for proposal in proposals}
        return proposals

    async def accept(self, fact_id: str, digest: str | None = None) -> AnsweredProposal:
        """Write the proposal as it was last shown, or shown with this digest. With the outcome
        `changed` nothing was written, because it is another proposal by now. Raises NotFound,
        WorkspaceError, StorageError.
        """
        shown = digest or self._shown.get(fact_id, "")
        proposal = await self._open(fact_id)
        if proposal.problem:
            return AnsweredProposal(proposal, "too_long")
        if proposal.digest != shown:
            return AnsweredProposal(proposal, "changed")
        async with self._workspace.lock(proposal.path):
            data = proposal.after.encode()
            intent = await self._workspace.plan(proposal.path, FileAction.WRITE, data)
            is_as_shown = intent.before == proposal.before
            if is_as_shown:
                await self._workspace.apply(intent, _READER, OWNER)
        if not is_as_shown:
            return AnsweredProposal(await self._open(fact_id), "changed")
        await self._answers.answer(fact_id, self._clock.now(), accepted=True)
        log.info("proposal_accepted", fact=fact_id, path=proposal.path)
        return AnsweredProposal(proposal, "accepted")

    async def reject(self, fact_id: str) -> AnsweredProposal:
        """Never propose this fact again. Raises NotFound, WorkspaceError, StorageError."""
        proposal = await self._open(fact_id)
        await self._answers.answer(fact_id, self._clock.now(), accepted=False)
        log.info("proposal_rejected", fact=fact_id, path=proposal.path)
        return AnsweredProposal(proposal, "rejected")

    async def _open(self, fact_id: str) -> Proposal:
        for proposal in await self.all():
            if proposal.id == fact_id:
                return proposal
        raise NotFound(
            f"nothing is proposed for fact {fact_id}",
            cure="`agentd memory proposals` lists what is",
        )

    async def _view(self, path: str) -> FileView:
        try:
            return await self._workspace.read(path, _READER)
        except FileMissing:
            return FileView(path, "", "")

    def _build(self, state: _State) -> tuple[Proposal, ...]:
        return tuple(self._proposal(wish, state.files[wish.path]) for wish in _wishes(state))

    def _proposal(self, wish: _WantedLine, view: FileView) -> Proposal:
        after = _rewritten(view.text, wish)
        problem = ""
        if len(after) > max(self._cap, len(view.text)):
            problem = (
                f"{wish.path} would be longer than the {self._cap:,} characters that prompts "
                "carry: shorten it first"
            )
        named = f"{wish.path}\n{view.digest}\n{after}"
        return Proposal(
            wish.fact.id,
            wish.path,
            wish.fact.text,
            "" if problem else _diff(wish.path, view.text, after),
            hashlib.sha256(named.encode()).hexdigest(),
            wish.sayings,
            view.digest,
            after,
            replaces=wish.instead_of.id if wish.instead_of else "",
            warnings=scan_change(view.text, after),
            problem=problem,
        )


class _State(Struct, frozen=True):
    """The inputs of proposals."""

    facts: Known
    evidence: Mapping[str, Sequence[Evidence]]
    answers: Mapping[str, bool]
    files: Mapping[str, FileView]
    zone: tzinfo


def _wishes(state: _State) -> Iterator[_WantedLine]:
    taken: set[str] = set()
    for path, view in state.files.items():
        for old, new in _outdated_in(state.facts, view.text):
            if state.answers.get(new.id, True) and new.id not in taken:
                taken.add(new.id)
                is_said = _says(view.text, new)
                yield _WantedLine(new, path, _sayings(state, new), old, is_said)
    open_ = [f for f in state.facts if f.id not in state.answers and f.id not in taken]
    earned = [
        fact
        for fact in open_
        if _is_earned(state, fact) and not _says(state.files[_path_of(fact)].text, fact)
    ]
    wishes = [_WantedLine(f, _path_of(f), _sayings(state, f)) for f in earned]
    yield from sorted(wishes, key=lambda w: (-w.sayings.times, w.sayings.first, w.fact.id))


def _is_earned(state: _State, fact: Fact) -> bool:
    days = _days_of(state.evidence.get(fact.id, ()), state.zone)
    return _is_said_enough(fact, _sayings(state, fact), days)


def _sayings(state: _State, fact: Fact) -> StatementCounts:
    return _sayings_of(state.evidence.get(fact.id, ()), fact)


def _path_of(fact: Fact) -> str:
    """Return the file for facts of this category."""
    return _PATHS[fact.category]


def _line_of(fact: Fact) -> str:
    """Return the fact as a line of a file."""
    return f"- {' '.join(fact.text.split())}"


def _sayings_of(evidence: Sequence[Evidence], fact: Fact) -> StatementCounts:
    """Count the times a fact was said. Evidence of one moment counts once, however many copies of
    the conversation there are.
    """
    said: dict[datetime, SessionKey] = {}
    for one in evidence:
        if not one.is_context and said.get(one.at, NO_SESSION) == NO_SESSION:
            said[one.at] = one.session
    times = list(said) or [fact.noted_at]
    keys = dict.fromkeys(session for session in said.values() if session != NO_SESSION)
    return StatementCounts(len(times), min(times), max(times), tuple(keys))


def _is_said_enough(fact: Fact, sayings: StatementCounts, days: int) -> bool:
    """Whether a fact was said often enough, and on different days or in different sessions."""
    if not fact.is_active or len(_line_of(fact)) > _LONGEST:
        return False
    if fact.source is FactSource.EXPLICIT and sayings.times >= _TIMES_ASKED:
        return True
    return sayings.times >= _TIMES and max(days, len(sayings.sessions)) >= _DISTINCT


def _days_of(evidence: Sequence[Evidence], zone: tzinfo) -> int:
    """Return on how many days it was said."""
    return len({one.at.astimezone(zone).date() for one in evidence if not one.is_context})


def _says(text: str, fact: Fact) -> bool:
    """Whether a line of the text, or a sentence in one, states the fact's sentence."""
    wanted = comparable(fact.text)
    lines = (line[found.end() :] for line in text.splitlines() if (found := _MARK.match(line)))
    said = (one for line in lines for one in (line, *sentences(line)))
    return any(comparable(one) == wanted for one in said)


def _outdated_in(facts: Known, text: str) -> tuple[tuple[Fact, Fact], ...]:
    """Return superseded facts whose lines are in the text, each with its current successor."""
    lines = {line.strip() for line in text.splitlines()}
    olds = [f for f in facts if f.status is FactStatus.SUPERSEDED and _line_of(f) in lines]
    return tuple((old, new) for old in olds if (new := facts.current(old.id)) is not None)


def _rewritten(text: str, wish: _WantedLine) -> str:
    """Return the file's text after the change."""
    if wish.instead_of is None:
        end = "\r\n" if "\r\n" in text else "\n"
        head = end if text and not text.endswith("\n") else ""
        return f"{text}{head}{_line_of(wish.fact)}{end}"
    old, new = _line_of(wish.instead_of), _line_of(wish.fact)
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.strip() != old:
            lines.append(line)
        elif not wish.is_said:
            lines.append(line.replace(old, new, 1))
    return "".join(lines)


def _diff(path: str, before: str, after: str) -> str:
    """Return the change as a unified diff; a last line without an end is marked."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    )
