"""Exports the graph as a whole, and imports what other agents say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from agentd.core.errors import GraphError, InvalidRequest
from agentd.core.evidence import SHARED
from agentd.core.graph import ConceptContext, Record, Relation
from agentd.core.ports import Clock, GraphStore
from agentd.memory.graph.journal import GraphJournal, Verdict
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.sharing import Sharing
from agentd.memory.graph.text import WrittenGraph
from agentd.memory.graph.transfer import (
    OWNER,
    ShareMessage,
    as_told_by,
    import_record,
    read_message,
    sender_of,
)
from agentd.zero import parse_all
from agentd.zero.decompiler import decompile
from agentd.zero.delta import Checkpoint, Delta, checkpoint, diff, merge_records
from agentd.zero.formats.reading import read
from agentd.zero.formats.records import canonical
from agentd.zero.formats.seal import HEADER
from agentd.zero.formats.writing import write

FILE = "file"  # teller of imported texts without one


class ExchangeState(Struct, frozen=True):
    """The state of the graph at a moment, and its `.0c` text."""

    checkpoint: Checkpoint
    text: str


class IntakeResult(Struct, frozen=True):
    """The result of taking in a message: numbers of new episodes, of known ones, of withdrawn ones,
    and of those kept out because they had been withdrawn, or forgotten here, before.
    """

    new: int
    known: int
    withdrawn: int
    kept_out: int = 0


class ChainVerdict(Struct, frozen=True):
    """The verdict on the chain, and the tellers of whom something else is stored than the chain
    says.
    """

    verdict: Verdict
    changed: tuple[str, ...] = ()


class Exchange:
    """Exchange of the graph with other agents. Methods raise WorkspaceError, StorageError."""

    def __init__(
        self,
        keeper: GraphKeeper,
        store: GraphStore,
        sharing: Sharing,
        clock: Clock,
        journal: GraphJournal | None = None,
    ) -> None:
        self._keeper = keeper
        self._store = store
        self._sharing = sharing
        self._clock = clock
        self._journal = journal or GraphJournal()
        self._refresh: Callable[[], Awaitable[object]] | None = None
        self._taking = asyncio.Lock()

    def refresh_with(self, refresh: Callable[[], Awaitable[object]]) -> None:
        """Await `refresh` before each answer; it makes facts take over changes of their page."""
        self._refresh = refresh

    async def fresh(self) -> None:
        """Bring the graph level with the page of facts and what others said."""
        if self._refresh is not None:
            await self._refresh()
        await self._keeper.level()

    async def level(self) -> None:
        """Bring the shares level with the facts that hold, if facts are read and anything is
        shared.
        """
        if self._refresh is not None and await self._sharing.is_used():
            await self.fresh()
            await self._sharing.level()

    async def state(self) -> ExchangeState:
        """Return all that the owner may see, level with the facts."""
        await self.fresh()
        record = await snapshot(self._store)
        return ExchangeState(*await asyncio.to_thread(_checkpoint, record))

    async def since(self, old: str) -> Delta:
        """Return the delta from a state that `state` returned earlier, as text, to now. Raises
        GraphError for an invalid text.
        """
        await self.fresh()
        record = await snapshot(self._store)
        return await asyncio.to_thread(lambda: diff(read(old), record))

    async def export(self) -> WrittenGraph:
        """Write the whole text of the graph anew. Raises GraphError."""
        await self.fresh()
        return await self._keeper.export()

    async def logged(self) -> ChainVerdict:
        """Return whether the chain is as it was written, and whether what others said is as entered
        in it.
        """
        await self.fresh()
        verdict = await self._journal.verdict()
        if not verdict.is_sound:
            return ChainVerdict(verdict)
        return ChainVerdict(verdict, await self._journal.changed(await self._keeper.receipts()))

    async def take(self, text: str, name: str, trust: float) -> IntakeResult:
        """Take in the message of another agent, called `name` here, with its confidences multiplied
        by `trust`. What was taken in before keeps its confidence, so the same message changes
        nothing when repeated. A sender can withdraw only what it said itself; nothing that was
        withdrawn or forgotten here comes in again.

        Additions come first, withdrawals second: after a failure in between, take the message
        again. Raises GraphError, and changes nothing, for a text that `read_message` refuses, a
        message of this agent itself, a trust outside (0, 1], and a name that is invalid or belongs
        to somebody else; InvalidRequest if no space is shared.
        """
        if not self._sharing.scopes:
            raise InvalidRequest(
                "nothing is shared with anybody, so nothing is taken in",
                cure=(
                    "name a space in `spaces` of the [graph] table of config.toml, "
                    "then `agentd restart`"
                ),
            )
        now = self._clock.now()
        message = await asyncio.to_thread(read_message, text, self._sharing.scopes, now)
        if message.sender and message.sender == await self._sharing.agent():
            raise GraphError("the message is of this agent itself", cure="take it in elsewhere")
        name = self._sender_label(name)
        fresh = await asyncio.to_thread(as_told_by, message, name, trust)
        async with self._taking:
            await self.fresh()
            return await self._take(message, fresh, name)

    async def take_text(self, text: str, name: str, trust: float) -> IntakeResult:
        """Take in a graph text, `.0` or `.0c`, with its confidences multiplied by `trust`: as said
        by `name`, who is also meant by `user` in it; without a name as said by a file. Repeating it
        changes nothing. Raises GraphError for a text that does not match its hashes, and for a name
        that is invalid or belongs to somebody else.
        """
        teller = self._sender_label(name) if name else FILE
        record = await asyncio.to_thread(_read, text)
        fresh = import_record(record, teller, trust, teller if name else "")
        async with self._taking:
            await self.fresh()
            return await self._take(ShareMessage("", fresh, frozenset()), fresh, teller)

    async def _take(self, message: ShareMessage, fresh: Record, name: str) -> IntakeResult:
        here = await self._said_by(message.sender, name)
        out = await self._keeper.kept_out() - here.keys()
        said = [r for r in fresh.relations if r.refs[0] not in out]
        added = await self._keeper.add(fresh, [r for r in said if r.refs[0] not in here], name)
        gone = [here[one.hex].episode for one in message.withdrawn if one.hex in here]
        withdrawn = await self._keeper.withdraw(gone) if gone else 0
        known = len(said) - added.episodes
        return IntakeResult(added.episodes, known, withdrawn, len(fresh.relations) - len(said))

    @property
    def is_logged(self) -> bool:
        """Whether a chain is kept."""
        return self._journal.is_kept

    async def _said_by(self, sender: str, name: str) -> Mapping[str, Relation]:
        """Return what this sender said before, by the sender's own episode hash. Raises GraphError
        if the sender is known by another name, or the name is another sender's.
        """
        relations = await self._store.episodes()
        contexts = await self._store.contexts(sorted({one.context for one in relations}))
        foreign = {key: one for key, one in contexts.items() if one.source == SHARED}
        for context in foreign.values():
            _check_name(context, sender, name)
        return {
            ref: one
            for one in relations
            if one.context in foreign and foreign[one.context].agent == name
            for ref in one.refs
        }

    def _sender_label(self, name: str) -> str:
        """Return the normal label of the sender. Raises GraphError."""
        label = self._keeper.resolve(name)
        if label == OWNER:
            raise GraphError(f"{name[:40]!r} is the owner here", cure="give the sender a name")
        return label


async def snapshot(store: GraphStore) -> Record:
    """Return all episodes of the store as a record, in the order of the hashes, with their concepts
    and contexts. Concepts without an episode are not part of it, because the port does not list
    them.
    """
    relations = await store.episodes()
    ends = {end for one in relations for end in (one.subject, one.object)}
    concepts = await store.concepts(sorted(ends))
    contexts = await store.contexts(sorted({one.context for one in relations}))
    return canonical(Record(tuple(concepts.values()), tuple(contexts.values()), tuple(relations)))


def _check_name(context: ConceptContext, sender: str, name: str) -> None:
    known, is_called = sender_of(context), context.agent
    if sender and known == sender and is_called != name:
        raise GraphError(
            f"the sender is called {is_called!r} here, not {name!r}", cure=f"use --from {is_called}"
        )
    if sender and known != sender and is_called == name:
        raise GraphError(
            f"another sender is called {name!r} here", cure="give this one a name of its own"
        )


def _read(text: str) -> Record:
    """Parse a graph text. Raises GraphError."""
    if text.lstrip().startswith(HEADER):
        return read(text)
    return merge_records(decompile(graph).record for graph in parse_all(text))


def _checkpoint(record: Record) -> tuple[Checkpoint, str]:
    return checkpoint(record), write(record)
