"""What is to be done to page and rows, gathered one statement after the other. Pure but for ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentd.domain.fact import (
    Fact,
    FactSource,
    FactStatus,
    Learned,
    Provenance,
    Sighting,
    Statement,
)
from agentd.domain.turn import SessionKey
from agentd.facts.judge import Judgement
from agentd.facts.known import Digests, Known


@dataclass(frozen=True, slots=True)
class Change:
    """One step from a state of page and rows to the next. `saved` are rows, `written` lines. Lines
    without an id are meant by their index: `adopted` ones become the fact's, `cut` ones go. `parked`
    is None where that stays as it is. `revived` are forgotten facts whose words stand in lines that are
    dropped: whoever wrote those down made copies of them.
    """

    saved: tuple[Fact, ...] = ()
    written: tuple[Fact, ...] = ()
    adopted: Mapping[int, Fact] = field(default_factory=dict)
    cut: frozenset[int] = frozenset()
    dropped: frozenset[str] = frozenset()
    revived: tuple[Fact, ...] = ()
    buried: Mapping[str, datetime] = field(default_factory=dict)
    sightings: tuple[Sighting, ...] = ()
    marks: Mapping[SessionKey, int] = field(default_factory=dict)
    unburied: tuple[bytes, ...] = ()
    parked: tuple[str, ...] | None = None

    @property
    def is_of_page(self) -> bool:
        """Whether lines change."""
        return bool(self.written or self.adopted or self.cut or self.dropped or self.buried)


class Batch:
    """Judged statements. Each is seen by the ones after it; `undo` takes all of them back."""

    def __init__(
        self, known: Known, digests: Digests, graves: frozenset[bytes], new_id: Callable[[], str]
    ) -> None:
        self._known = known
        self._digests = digests
        self._graves = graves
        self._new_id = new_id
        self._before: dict[str, Fact | None] = {}
        self.sightings: list[Sighting] = []
        self.unburied: list[bytes] = []

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All that have changed, as they are now."""
        return tuple(fact for i in self._before if (fact := self._known.get(i)) is not None)

    def is_buried(self, said: Statement) -> bool:
        """Whether the user had this erased and has not said it again on purpose."""
        is_on_purpose = said.source is not FactSource.EXTRACTED and not said.is_carried
        return not is_on_purpose and bool(self._found(said))

    def has_grave(self, text: str) -> bool:
        """Whether the user had these words erased and has not said them again on purpose."""
        return bool(self._graves.intersection(self._digests.of(text, None)))

    def related(self, said: Statement) -> tuple[Fact, ...]:
        """The active facts that say the same, or fill the same slot."""
        return self._known.related(said)

    def spoken(self, said: Statement) -> None:
        """It was said on purpose: what was forgotten of it may be known again."""
        self.unburied += self._found(said)

    def take(self, said: Statement, judged: Judgement, now: datetime) -> Learned:
        """Do what was judged."""
        if judged.kind == "refused":
            return Learned(None, reason=judged.reason)
        self.spoken(said)
        known = self._known.get(judged.duplicate_of) if judged.duplicate_of else None
        if known is not None:
            self.sightings.append(Sighting(known.id, said.at, said.origin))
            return Learned(self._confirmed(known, said))
        return self.add(said, judged.supersedes, judged.superseded_by, now)

    def add(
        self, said: Statement, supersedes: Sequence[str], superseded_by: str, now: datetime
    ) -> Learned:
        """Make a fact of it, in the place of others, or behind one that says otherwise already."""
        newer = self._known.get(superseded_by) if superseded_by else None
        fact = Fact(
            id=self._fresh_id(),
            text=said.text,
            category=said.category,
            source=said.source,
            confidence=said.source.confidence if said.confidence is None else said.confidence,
            valid_from=said.at,
            noted_at=now,
            status=FactStatus.SUPERSEDED if newer else FactStatus.ACTIVE,
            valid_to=max(newer.valid_from, said.at) if newer else None,
            superseded_by=newer.id if newer else "",
            origin=said.origin,
            triple=said.triple,
        )
        self.put(fact)
        self.sightings.append(Sighting(fact.id, said.at, said.origin))
        olds = [self.set_aside(i, said.at, fact.id) for i in supersedes]
        return Learned(fact, is_new=True, superseded=tuple(old for old in olds if old is not None))

    def set_aside(self, fact_id: str, at: datetime, by: str = "") -> Fact | None:
        """Let an active fact hold no longer; None if it does not anyway."""
        old = self._known.get(fact_id)
        if old is None or not old.is_active:
            return None
        until = max(at, old.valid_from)
        old = replace(old, status=FactStatus.SUPERSEDED, valid_to=until, superseded_by=by)
        self.put(old)
        return old

    def retire(self, successors: Mapping[str, str], now: datetime) -> None:
        """Let facts hold no longer, each for the active one named beside it, or for none from now on."""
        named = {i: self._known.get(i) for i in successors.values()}
        since = {i: fact.valid_from for i, fact in named.items() if fact and fact.is_active}
        for fact_id, by in successors.items():
            if not by or by in since:
                self.set_aside(fact_id, since.get(by, now), by)

    def put(self, fact: Fact) -> None:
        """Let the fact be as it is here."""
        self._before.setdefault(fact.id, self._known.get(fact.id))
        self._known.put(fact)

    def undo(self) -> tuple[str, ...]:
        """Nothing of all that happened; gives the ids of what was new."""
        for fact_id, fact in self._before.items():
            self._known.restore(fact_id, fact)
        return tuple(fact_id for fact_id, fact in self._before.items() if fact is None)

    def originals(self) -> tuple[Fact, ...]:
        """What changed, as it was before."""
        return tuple(fact for fact in self._before.values() if fact is not None)

    def _confirmed(self, known: Fact, said: Statement) -> Fact:
        """The fact, with the authority of who says it again."""
        if said.source.authority <= known.source.authority:
            return known
        sure = said.source.confidence if said.confidence is None else said.confidence
        known = replace(known, source=said.source, confidence=max(known.confidence, sure))
        self.put(known)
        return known

    def _found(self, said: Statement) -> list[bytes]:
        if not self._graves:
            return []
        return [d for d in self._digests.of(said.text, said.triple) if d in self._graves]

    def _fresh_id(self) -> str:
        while self._known.get(fact_id := self._new_id()) is not None:
            pass
        return fact_id


def without_session(facts: Sequence[Fact], session: SessionKey) -> tuple[Fact, ...]:
    """Those that were said in the session, as if nobody knew where."""
    return tuple(replace(f, origin=Provenance()) for f in facts if f.origin.session == session)
