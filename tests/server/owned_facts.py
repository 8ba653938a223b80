"""Facts that answer what they were told to, for tests of those who ask for them."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.fact import (
    Category,
    ChangeKind,
    ErasureReport,
    Fact,
    FactChange,
    FactHit,
    FactSource,
    FactStatus,
    FormerState,
    Matches,
    Mention,
    OperationResult,
)

AT = datetime(2026, 5, 4, 9, 40, tzinfo=UTC)
REPORT = ErasureReport(
    {"transcripts": 2, "notes": 1},
    (Mention(1, "memory/2026-05-04.md:3", "The Kassel client wants the offer."),),
    ("log",),
    ("/backups/a.tar.gz",),
)


def a_fact(fact_id, text, status=FactStatus.ACTIVE, **fields):
    return Fact(
        fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, AT, AT, status, **fields
    )


KASSEL = a_fact("aaaaaaaa", "The user lives in Kassel.")
FULDA = a_fact("bbbbbbbb", "The user lives in Fulda.")
TEA = a_fact("cccccccc", "The user likes tea.")
PAUL = a_fact("dddddddd", "Paul is the user's uncle.", FactStatus.PROPOSED, replaces=("cccccccc",))


class OwnedFacts:
    """Facts and their service in one. `keeps` is what `keep` and `accept` answer, `means` what
    `matching` does, `history_of_changes` the changes, newest first. `asked` has the calls that
    change.
    """

    def __init__(self, *facts, keeps=(), means=None, changes=()):
        self.facts = {fact.id: fact for fact in facts}
        self.keeps = tuple(keeps)
        self.means = Matches() if means is None else means
        self.made = list(changes)
        self.lost = ()
        self.asked = []

    async def all(self):
        return tuple(self.facts.values())

    async def find(self, query, limit):
        hits = [FactHit(f, 1.0, {"keyword": 1.0}) for f in self.facts.values() if query in f.text]
        return hits[:limit]

    async def history(self, fact_id):
        return (self.facts[fact_id],)

    async def learn(self, operations, *, session="", marks=None):
        self.asked.append(("learn", [one.text for one in operations]))
        return tuple(
            OperationResult(a_fact(str(n), one.text), True) for n, one in enumerate(operations)
        )

    async def end_facts(self, successors):
        return ()

    async def keep(self, text, session="", category=None):
        self.asked.append(("keep", text, session, category))
        return self.keeps

    async def matching(self, query, *, every=False):
        return self.means

    async def preview(self, fact_ids):
        return REPORT

    async def forget(self, fact_ids, also=(), session="", typed=""):
        self.asked.append(("forget", list(fact_ids), list(also)))
        return REPORT

    async def changes(self, limit):
        return tuple(self.made[:limit])

    async def undo(self, change=None, session=None):
        """Remove what the change brought and let hold what it put aside."""
        self.asked.append(("undo", change, session))
        left = (
            one
            for one in self.made
            if change in (None, one.id) and session in (None, one.session) and not one.undone
        )
        found = next(left, None)
        if found is None:
            raise NotFound("nothing is left to take back", cure="`agentd facts changes` lists it")
        if found.op is ChangeKind.FORGET:
            raise InvalidRequest("what was forgotten cannot come back", cure="say it again")
        done = replace(found, undone=True)
        self.made[self.made.index(found)] = done
        put_back = {one.id: one.status for one in found.before}
        if found.new not in put_back:
            self.facts.pop(found.new, None)
        for fact_id, status in put_back.items():
            self.facts[fact_id] = replace(self.facts[fact_id], status=status, superseded_by="")
        return done

    async def merge(self, keep, others):
        self.asked.append(("merge", keep, list(others)))
        for fact_id in others:
            over = FactStatus.SUPERSEDED
            self.facts[fact_id] = replace(self.facts[fact_id], status=over, superseded_by=keep)
        return a_change(7, ChangeKind.MERGE, keep, *others)

    async def pending(self):
        return tuple(f for f in self.facts.values() if f.status is FactStatus.PROPOSED)

    async def accept(self, fact_ids):
        self.asked.append(("accept", list(fact_ids)))
        return self.keeps

    async def reject(self, fact_ids):
        self.asked.append(("reject", list(fact_ids)))
        return tuple(self.facts.pop(fact_id) for fact_id in fact_ids)

    async def parked(self):
        return self.lost

    async def accept_parked(self):
        self.asked.append(("accept_parked",))
        return REPORT

    async def restore_parked(self):
        self.asked.append(("restore_parked",))
        return self.lost


def a_change(number, op, new="", *old, session="main", status=FactStatus.ACTIVE):
    before = tuple(FormerState(fact_id, status) for fact_id in old)
    return FactChange(op, AT, session, new, before, number)


def moved():
    """Facts in which Fulda has replaced Kassel, told in `main`."""
    gone = replace(KASSEL, status=FactStatus.SUPERSEDED, superseded_by=FULDA.id)
    change = a_change(12, ChangeKind.REPLACE, FULDA.id, KASSEL.id)
    learned = OperationResult(FULDA, is_new=True, gone=(gone,), change=change)
    return OwnedFacts(gone, FULDA, TEA, keeps=(learned,), changes=(change,))
