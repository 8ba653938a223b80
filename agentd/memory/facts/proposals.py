"""Proposals of lines for MEMORY.md and USER.md. Nothing is written without the user's yes to it.

What is proposed follows from the facts, the times they were said and the files alone. A yes is to the
very bytes that were shown: if the file has changed since, the proposal is shown anew instead.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal, Protocol

import structlog

from agentd.core.errors import FileMissing, NotFound
from agentd.core.fact import Evidence, Fact
from agentd.core.ports import Clock, FactStore, ProposalStore, Workspace
from agentd.core.screening.scanner import Suspicion, scan_change
from agentd.core.tool import FileAction
from agentd.core.turn import Kind, SessionKey
from agentd.core.workspace import OWNER, FileView, Reader
from agentd.memory.facts import curating
from agentd.memory.facts.curating import MEMORY, USER, Sayings, Wish

log = structlog.get_logger()


_READER = Reader(SessionKey("proposals"), Kind.MAIN)


Outcome = Literal["accepted", "rejected", "changed", "too_long"]


class ProposalBook(Protocol):
    """The facts."""

    async def all(self) -> tuple[Fact, ...]:
        """Every fact."""

    async def parked(self) -> Sequence[Fact]:
        """Those of which it is in doubt whether the user wants them gone."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a file, for a fact. A yes is to its `digest`, which no other change has. `replaces`
    is the fact whose line it takes; `problem` says why it cannot be made.
    """

    id: str
    path: str
    text: str
    diff: str
    digest: str
    sayings: Sayings
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


@dataclass(frozen=True, slots=True)
class AnsweredProposal:
    """What became of an answer, and the proposal it was about, as it is now."""

    proposal: Proposal
    outcome: Outcome


class Proposals:
    """What may be added to the files that every turn is told. `cap` is how many characters of a file
    prompts carry.
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
        """Those that are open, and so shown: first for lines that are no longer so, then by how often
        the fact was said. Raises WorkspaceError, StorageError.
        """
        parked = {fact.id for fact in await self._book.parked()}
        facts = {fact.id: fact for fact in await self._book.all() if fact.id not in parked}
        active = [fact.id for fact in facts.values() if fact.is_active]
        state = _State(
            facts,
            await self._store.evidence(active) if active else {},
            await self._answers.answered(),
            {path: await self._view(path) for path in (USER, MEMORY)},
            self._clock.zone,
        )
        proposals = await asyncio.to_thread(self._made, state)
        self._shown = {proposal.id: proposal.digest for proposal in proposals}
        return proposals

    async def accept(self, fact_id: str, digest: str | None = None) -> AnsweredProposal:
        """Write it as it was shown, last or with this digest. With the outcome `changed` nothing was
        written: it is another proposal by now. Raises NotFound, WorkspaceError, StorageError.
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
        """Never propose this again. Raises NotFound, WorkspaceError, StorageError."""
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

    def _made(self, state: _State) -> tuple[Proposal, ...]:
        return tuple(self._proposal(wish, state.files[wish.path]) for wish in _wishes(state))

    def _proposal(self, wish: Wish, view: FileView) -> Proposal:
        after = curating.rewritten(view.text, wish)
        problem = ""
        if len(after) > max(self._cap, len(view.text)):
            problem = (
                f"{wish.path} would be longer than the {self._cap:,} characters that prompts carry: "
                "shorten it first"
            )
        named = f"{wish.path}\n{view.digest}\n{after}"
        return Proposal(
            wish.fact.id,
            wish.path,
            wish.fact.text,
            "" if problem else curating.diff(wish.path, view.text, after),
            hashlib.sha256(named.encode()).hexdigest(),
            wish.sayings,
            view.digest,
            after,
            replaces=wish.instead_of.id if wish.instead_of else "",
            warnings=scan_change(view.text, after),
            problem=problem,
        )


@dataclass(frozen=True, slots=True)
class _State:
    """All that proposals follow from."""

    facts: Mapping[str, Fact]
    evidence: Mapping[str, Sequence[Evidence]]
    answers: Mapping[str, bool]
    files: Mapping[str, FileView]
    zone: tzinfo


def _wishes(state: _State) -> Iterator[Wish]:
    taken: set[str] = set()
    for path, view in state.files.items():
        for old, new in curating.outdated(state.facts, view.text):
            if state.answers.get(new.id, True) and new.id not in taken:
                taken.add(new.id)
                is_said = curating.says(view.text, new)
                yield Wish(new, path, _sayings(state, new), old, is_said)
    open_ = [f for f in state.facts.values() if f.id not in state.answers and f.id not in taken]
    earned = [
        fact
        for fact in open_
        if _is_earned(state, fact)
        and not curating.says(state.files[curating.path_of(fact)].text, fact)
    ]
    wishes = [Wish(f, curating.path_of(f), _sayings(state, f)) for f in earned]
    yield from sorted(wishes, key=lambda w: (-w.sayings.times, w.sayings.first, w.fact.id))


def _is_earned(state: _State, fact: Fact) -> bool:
    days = curating.days_of(state.evidence.get(fact.id, ()), state.zone)
    return curating.is_earned(fact, _sayings(state, fact), days)


def _sayings(state: _State, fact: Fact) -> Sayings:
    return curating.sayings_of(state.evidence.get(fact.id, ()), fact)
