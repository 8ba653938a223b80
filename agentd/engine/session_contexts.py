"""What sessions' contexts hold between turns, and how large the next request over them is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.message import Block
from agentd.core.offloading import offload_rows
from agentd.core.ports import Clock, Contexts
from agentd.core.transcript import History
from agentd.core.turn import SessionKey
from agentd.engine import tokens
from agentd.engine.context import TurnPromptParts
from agentd.engine.durable import when_space

_READ = 4  # windows of context that a turn reads at most
_SESSIONS = 256  # whose state is kept in memory
_PART = -1  # stands for the generation of a context of which a turn carries a part
_BASES = 4  # turns of a session whose context generation is known, the running one included


class ContextState(Struct):
    """What is known of a session's context between its turns: `unfinished` are the ids of the turns
    whose end is not stored, `basis` maps each of the last turns to the generation of the context
    that it ran on, and `fixed` is the tokens that all calls carry. `is_owed` is True if room must
    be made whatever the last turn used, `is_refused` if the service found the context too long and
    answered a part of it.
    """

    unfinished: set[int] = field(default_factory=set)
    basis: dict[int, int] = field(default_factory=dict)
    fixed: int = 0
    is_owed: bool = False
    is_refused: bool = False


class SessionContexts:
    """Reads and measures sessions' contexts; leaves out the turns that it knows to be unfinished.
    `window` is the model's context window in tokens.
    """

    def __init__(self, store: Contexts, clock: Clock, window: int) -> None:
        self._store = store
        self._clock = clock
        self._most_bytes = int(_READ * window * tokens.BYTES_PER_TOKEN)
        self._states: OrderedDict[SessionKey, ContextState] = OrderedDict()  # last used last
        self._weighed: tuple[object, int] = (None, 0)  # last system prompt and tools, their tokens

    def mark_unfinished(self, session: SessionKey, turn_id: int) -> None:
        """Mark the turn as unfinished: until `mark_ended` no other prompt, flush or cut includes
        its rows.
        """
        self.state(session).unfinished.add(turn_id)

    def mark_ended(self, session: SessionKey, turn_id: int) -> None:
        """Mark the turn as finished: its end is stored."""
        self.state(session).unfinished.discard(turn_id)

    def unfinished(self, session: SessionKey) -> frozenset[int]:
        """Return the ids of the session's unfinished turns."""
        return frozenset(self.known(session).unfinished)

    async def read_past(self, session: SessionKey, turn_id: int) -> History:
        """Return the session's context for the turn, what has ended before it, and remember which
        generation of it the turn runs on. Of a very long context only the newest rows are read,
        about four windows of them, as many as an excerpt is made from. Raises StorageError.
        """
        history = await when_space(self._clock, self._store.load, session, self._most_bytes)
        self.state(session).is_owed = history.flush_due or history.is_excerpted
        self._set_basis(session, turn_id, history.generation)
        unended = self.unfinished(session) | {turn_id}
        return await offload_rows(history.rows, lambda: history.without_turns(unended))

    async def read_between_turns(self, session: SessionKey) -> History:
        """Return the session's context: what has ended by now. Raises StorageError."""
        unended = self.unfinished(session)
        whole = await self._store.load(session)
        return await offload_rows(whole.rows, lambda: whole.without_turns(unended))

    def carry_part(self, session: SessionKey, turn_id: int) -> None:
        """Remember that the turn runs on a part of its context, so that its usage does not tell how
        large the whole is.
        """
        self._set_basis(session, turn_id, _PART)

    def weigh(self, context: TurnPromptParts) -> None:
        """Remember the estimated tokens of the system prompt and the tools, which all calls of the
        session carry. They usually equal those of the turn before.
        """
        carried = (context.system, context.tools)
        if self._weighed[0] != carried:
            self._weighed = (carried, tokens.of_fixed(*carried))
        self.state(context.request.session).fixed = self._weighed[1]

    async def measured(self, history: History, incoming: Sequence[Block] = ()) -> int:
        """Return the estimated tokens of the session's next request over this context, with
        `incoming` as the user's new message.
        """
        return await offload_rows(history.rows, lambda: self.measure(history, incoming))

    def measure(self, history: History, incoming: Sequence[Block]) -> int:
        """Return what `measured` returns, from any thread. The usage of a turn does not count if
        the context was swapped while the turn ran, because it still ran on the old one.
        """
        state = self.known(history.session)
        rows = tuple(
            replace(r, usage=None)
            if state.basis.get(r.turn_id or 0, history.generation) != history.generation
            else r
            for r in history.rows
        )
        return tokens.of_next_request(replace(history, rows=rows), incoming, state.fixed)

    def state(self, session: SessionKey) -> ContextState:
        """Return the session's state, to be changed. Of all but the sessions used last, only states
        are kept that say more than an estimate.
        """
        state = self._states.setdefault(session, ContextState())
        self._states.move_to_end(session)
        while len(self._states) > _SESSIONS:
            oldest = next(iter(self._states))
            if self._states[oldest].unfinished or self._states[oldest].is_owed:
                self._states.move_to_end(oldest)
                break  # the next call examines the next oldest
            del self._states[oldest]
        return state

    def known(self, session: SessionKey) -> ContextState:
        """Return the session's state, to be read, from any thread; an empty state if nothing is
        known.
        """
        return self._states.get(session) or ContextState()

    def forget(self, session: SessionKey) -> None:
        """Forget all but the unfinished turns of the session, whose context is deleted."""
        gone = self._states.pop(session, None)
        if gone is not None and gone.unfinished:  # turns that came meanwhile
            self.state(session).unfinished = gone.unfinished

    def _set_basis(self, session: SessionKey, turn_id: int, generation: int) -> None:
        basis = self.state(session).basis
        basis[turn_id] = generation
        while len(basis) > _BASES:
            del basis[next(iter(basis))]
