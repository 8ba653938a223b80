"""The facts that the owner shares, and the messages that announce them.

Each share has a salt of its own, which is part of what others are sent. So the hash under which a
fact was sent reveals nothing once the fact is forgotten and the salt deleted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.erasure import Erasure
from agentd.core.errors import FactsOff, InvalidRequest, NotFound
from agentd.core.evidence import SHARED
from agentd.core.fact import Fact, Triple
from agentd.core.graph import EpisodeHash, Record, Share
from agentd.core.ports import ShareStore
from agentd.memory.graph.derive import Derived
from agentd.memory.graph.journal import GraphJournal
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.transfer import message, scope_of
from agentd.zero.compiler import record_of
from agentd.zero.delta import merge_records
from agentd.zero.hashes import context_hash, episode_hash, fact_hash
from agentd.zero.naming import Aliases
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

MOST = 2_000  # most facts of one space, and most withdrawn ones that are remembered

_LITERAL = Aliases({})

Name = Callable[[str, str, str], EpisodeHash]  # arguments: fact id, space, salt


class ShownFacts(Struct, frozen=True):
    """A fact shared in a space; `is_sent`: a message has announced it."""

    space: str
    fact: Fact
    is_sent: bool


class SentMessage(Struct, frozen=True):
    """A message: its text, and the numbers of facts it announces and withdraws."""

    text: str
    facts: int
    withdrawn: int


class Sharing:
    """The shared facts. `spaces` are those that the owner has named; `agent` returns the name of
    this agent in its messages. If not `fed` with facts, nothing more is shared. Methods raise
    StorageError.
    """

    def __init__(
        self,
        keeper: GraphKeeper,
        store: ShareStore,
        spaces: Sequence[str],
        agent: Callable[[], Awaitable[str]],
        journal: GraphJournal | None = None,
        *,
        fed: bool = True,
        salt: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._keeper = keeper
        self._store = store
        self._spaces = tuple(spaces)
        self._agent = agent
        self._is_fed = fed
        self._journal = journal or GraphJournal()
        self._salt = salt
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """See Eraser."""
        return "shared facts"

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the spaces."""
        return frozenset(map(scope_of, self._spaces))

    async def agent(self) -> str:
        """Return the name of this agent in its messages."""
        return await self._agent()

    async def shown(self) -> tuple[ShownFacts, ...]:
        """Return all shared facts."""
        async with self._lock:
            shares, known = await self._level()
        return tuple(
            ShownFacts(one.space, known.facts[one.fact][0], one.is_sent)
            for one in shares
            if not one.is_gone
        )

    async def share(self, name: str, space: str | None = None) -> tuple[ShownFacts, ...]:
        """Share the present facts about a name, but no later ones; return all of them, newly shared
        or not. Without `space` the only space is meant.

        Raises InvalidRequest for a space that the owner has not named or that would have too many
        facts, FactsOff if facts are switched off, NotFound if no fact is about the name, GraphError
        for an invalid name.
        """
        space = self._checked(space)
        if not self._is_fed:
            raise FactsOff(
                "facts are switched off: no more of them are shared",
                cure=(
                    "set `enabled = true` in the [facts] table of config.toml, "
                    "then `agentd restart`"
                ),
            )
        async with self._lock:
            shares, known = await self._level()
            about = known.about(name)
            if not about:
                raise NotFound(
                    f"no fact that holds is about {name!r}",
                    cure="`agentd facts list` shows what there is",
                )
            here = {one.fact: one for one in shares if one.space == space and not one.is_gone}
            fresh = [
                known.shared(fact, space, self._salt()) for fact in sorted(about - here.keys())
            ]
            if len(here) + len(fresh) > MOST:
                raise InvalidRequest(
                    f"the space {space!r} would have more than {MOST} facts",
                    cure="take some back with `agentd facts unshare`, or use another space",
                )
            if fresh:
                await self._store.put_shares(worth_keeping([*shares, *fresh]))
        return tuple(
            ShownFacts(space, known.facts[one][0], one in here and here[one].is_sent)
            for one in sorted(about)
        )

    async def unshare(self, name: str, space: str | None = None) -> tuple[ShownFacts, ...]:
        """Stop sharing the facts about a name, in one space or in all; the next message withdraws
        them. Return the shares that ended. Raises NotFound if none is shared, GraphError.
        """
        async with self._lock:
            shares, known = await self._level()
            about = known.about(name)
            gone = {
                one: None
                for one in shares
                if one.fact in about and (space is None or one.space == space)
            }
            if not gone:
                raise NotFound(
                    f"no fact about {name!r} is shared", cure="`agentd facts share` shows what is"
                )
            left = [one for one in shares if one not in gone]
            ended = (one.ended() for one in gone if one.is_sent)
            await self._store.put_shares(worth_keeping([*left, *ended]))
        return tuple(ShownFacts(one.space, known.facts[one.fact][0], one.is_sent) for one in gone)

    async def send(self, space: str, *, whole: bool = False) -> SentMessage:
        """Return the message for a space: what is new since the last one, or with `whole`
        everything. Its contents count as sent from then on. Raises InvalidRequest.
        """
        space = self._checked(space)
        async with self._lock:
            shares, known = await self._level()
            due = [one for one in shares if one.space == space and (whole or not one.is_sent)]
            said = [one for one in due if not one.is_gone]
            gone = [one.episode for one in due if one.is_gone]
            text = await asyncio.to_thread(known.message, said, space, gone)
            if due:
                await self._journal.enter("sent", text.encode())
                told = set(due)
                after = [replace(one, is_sent=one.is_sent or one in told) for one in shares]
                await self._store.put_shares(worth_keeping(after))
        return SentMessage(text, len(said), len(gone))

    async def erase(self, _: Erasure) -> int:
        """See Eraser: end the shares of forgotten facts, and return how many."""
        async with self._lock:
            before = await self._store.shares()
            if not any(not one.is_gone for one in before):
                return 0
            shares, _known = await self._level(before, traceless=True)
            return sum(not one.is_gone for one in before) - sum(not one.is_gone for one in shares)

    async def is_used(self) -> bool:
        """Whether anything is shared."""
        async with self._lock:
            return any(not one.is_gone for one in await self._store.shares())

    async def level(self) -> None:
        """Bring the shares level with the facts that hold. The caller must have had the facts read,
        because a missing fact is withdrawn.
        """
        async with self._lock:
            if before := await self._store.shares():
                await self._level(before)

    def _checked(self, space: str | None) -> str:
        """Return a space that the owner has named. Raises InvalidRequest."""
        if space is None and len(self._spaces) == 1:
            return self._spaces[0]
        if space is None and self._spaces:
            there = ", ".join(self._spaces)
            raise InvalidRequest(f"there are several spaces: {there}", cure="say in which: --space")
        if space is not None and space in self._spaces:
            return space
        what = f"nothing is shared in a space {space[:40]!r}" if space else "no space is named"
        raise InvalidRequest(
            what,
            cure="name it in `spaces` of the [graph] table of config.toml, then `agentd restart`",
        )

    async def _level(
        self, before: Sequence[Share] | None = None, *, traceless: bool = False
    ) -> tuple[tuple[Share, ...], _Known]:
        if before is None:
            before = await self._store.shares()
        known = _Known(await self._keeper.said(), await self._agent())
        shares = _update_shares(before, known.facts.keys(), known.name_of, self._salt)
        if shares != tuple(before):
            await self._store.put_shares(worth_keeping(shares), traceless=traceless)
        return shares, known


class _Known(Struct, frozen=True):
    """The facts that hold, and how this agent announces them."""

    said: Derived
    agent: str

    @property
    def facts(self) -> Mapping[str, tuple[Fact, Triple]]:
        """The facts with their triples, by id."""
        return self.said.holding

    def about(self, name: str) -> set[str]:
        """Return the ids of the facts with this subject or value. Raises GraphError for an invalid
        name.
        """
        label = self.said.names.resolve(name)
        ends = ((one, {triple.subject, triple.value}) for one, (_, triple) in self.facts.items())
        return {one for one, labels in ends if label in labels}

    def name_of(self, fact: str, space: str, salt: str) -> EpisodeHash:
        known, triple = self.facts[fact]
        return _name_of(triple, known.valid_from, scope_of(space), self.agent, salt)

    def shared(self, fact: str, space: str, salt: str) -> Share:
        return Share(space, self.name_of(fact, space, salt), fact, salt)

    def message(self, said: Sequence[Share], space: str, gone: Collection[EpisodeHash]) -> str:
        scope = scope_of(space)
        records = []
        for one in said:
            known, triple = self.facts[one.fact]
            sure, at = known.confidence, known.valid_from
            records.append(_shared_record(triple, at, sure, scope, self.agent, one.salt))
        return message(merge_records(records), [scope], gone)


def worth_keeping(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Return the shares worth keeping: all, but of the withdrawn ones only the newest MOST per
    space.
    """
    found: list[Share] = []
    gone: dict[str, int] = {}
    for share in reversed(tuple(shares)):
        gone[share.space] = gone.get(share.space, 0) + share.is_gone
        if not share.is_gone or gone[share.space] <= MOST:
            found.append(share)
    return tuple(reversed(found))


def _shared_record(
    triple: Triple, at: datetime, sure: float, scope: str, agent: str, salt: str
) -> Record:
    """Return what others are sent of a fact with this normal triple: an episode in the scope, at
    the time since which the fact holds.
    """
    said = SemanticTuple(triple.subject, triple.relation, triple.value, sure)
    where = ContextMeta(at, SHARED, scope, agent, salt)
    return record_of(CompilerInput((said,), where), _LITERAL)


def _name_of(triple: Triple, at: datetime, scope: str, agent: str, salt: str) -> EpisodeHash:
    """Return the episode hash of what `_told_of` returns."""
    said = fact_hash(triple.subject, triple.relation, triple.value)
    return episode_hash(said, context_hash(at, SHARED, scope, agent, salt))


def _update_shares(
    shares: Iterable[Share], holding: Collection[str], name: Name, salt: Callable[[], str]
) -> tuple[Share, ...]:
    """Return the shares as they have to be now that these facts hold: a fact that no longer holds
    is withdrawn, and one with a new hash is withdrawn and shared anew.
    """
    kept: list[Share] = []
    for share in shares:
        holds = share.fact in holding
        if share.is_gone or (holds and name(share.fact, share.space, share.salt) == share.episode):
            kept.append(share)
            continue
        if share.is_sent:
            kept.append(share.ended())
        if holds:
            anew = salt()
            episode = name(share.fact, share.space, anew)
            kept.append(Share(share.space, episode, share.fact, anew))
    return tuple(kept)
