"""Tracks which clients watch which session, and sends them its events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from msgspec.structs import replace

from agentd.core.errors import Busy
from agentd.core.event import (
    AnswerDelayed,
    AnswerWaits,
    FactsChanged,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from agentd.core.turn import SessionKey
from agentd.interfaces.acp import frames
from agentd.interfaces.acp.peer import Peer
from agentd.interfaces.acp.updates import Update, event_updates, join_chunks

log = structlog.get_logger()

Watch = Callable[[Peer], None]


def update_params(
    session: SessionKey, update: Update, meta: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the params of a `session/update`."""
    params: dict[str, Any] = {"sessionId": session, "update": update}
    if meta:
        params["_meta"] = meta
    return params


class Hub:
    """Sends the events of turns to the attached clients, numbered by session.

    The events of a running turn are kept until it ends, so that a client that attaches meanwhile
    sees it from the start. Not kept are delays of the answer, whose seconds run out, and changes of
    facts, which are rows of their own.
    """

    def __init__(self, context_window: int = 0, most_sessions: int = 256) -> None:
        """`context_window` is the model's, in tokens; with 0 no client is told how full it is. A
        client may have `most_sessions` open at once.
        """
        self.context_window = context_window
        self._most = most_sessions
        self._open: Counter[Peer] = Counter()  # how many sessions each client watches
        self._channels: dict[SessionKey, _Channel] = {}
        self._numbers: dict[SessionKey, int] = {}  # the last ones of sessions without a channel
        self._authors: dict[tuple[SessionKey, str], Peer] = {}

    def emit(self, event: TurnEvent) -> None:
        """Send an event to the session's clients. Never blocks, never raises."""
        channel = self._channel(event.session)
        author = None
        if isinstance(event, TurnStarted):
            channel.running = event.message_id
            channel.backlog.clear()
            author = self._authors.get((event.session, event.message_id))
        channel.show(event, author)
        if isinstance(event, TurnEnded):
            if (
                channel.running == event.turn.message_id
            ):  # the ended turn may be one that was only queued
                channel.running = ""
                channel.backlog.clear()
            self._authors.pop((event.session, event.turn.message_id), None)
            self._forget_if_idle(event.session)

    async def wait_room(self, session: SessionKey) -> None:
        """Return when every client of the session has read most of what is queued for it, or was
        dropped because it reads nothing.
        """
        channel = self._channels.get(session)
        for peer, held in tuple(channel.watchers.items()) if channel else ():
            if held is None:
                await peer.wait_room()

    def tell(self, session: SessionKey, update: Update) -> None:
        """Send an update that is no event of a turn to all clients of the session."""
        self._channel(session).tell(update)

    def seq(self, session: SessionKey) -> int:
        """Return the number of the session's newest event since the daemon started; 0 before the
        first.
        """
        channel = self._channels.get(session)
        return channel.seq if channel else self._numbers.get(session, 0)

    def running(self, session: SessionKey) -> str:
        """Return the message id of the running turn, "" if none runs."""
        channel = self._channels.get(session)
        return channel.running if channel else ""

    def running_text(self, session: SessionKey) -> str | None:
        """Return the user's words of the running turn, None if none runs."""
        channel = self._channels.get(session)
        if channel is None or not channel.backlog:
            return None
        first = channel.backlog[0][1]
        return first.text if isinstance(first, TurnStarted) else None

    def is_attached(self, session: SessionKey, peer: Peer) -> bool:
        """Return whether the client watches the session."""
        channel = self._channels.get(session)
        return channel is not None and peer in channel.watchers

    def require_room(self, peer: Peer) -> None:
        """Raise Busy if the client has as many sessions open as it may."""
        if self._open[peer] >= self._most:
            raise Busy(
                f"this client has {self._most} sessions open",
                cure="close one with session/close, or connect anew",
            )

    async def attach(self, session: SessionKey, peer: Peer) -> None:
        """Send the session's events to the client from now on, after those of the running turn so
        far, as fast as the client reads them. Raises Busy.
        """
        if self.is_attached(session, peer):
            return
        held = self.hold_back(session, peer)
        try:
            while held:
                await peer.wait_room()
                peer.send(held.popleft())
        finally:
            self.stop_holding_back(session, peer)

    def hold_back(self, session: SessionKey, peer: Peer) -> deque[bytes]:
        """Attach, but keep what is to be shown in the returned queue until `release`. Raises
        Busy.
        """
        if not self.is_attached(session, peer):
            self.require_room(peer)
            self._open[peer] += 1
        channel = self._channel(session)
        held = deque(channel.shown_so_far())
        channel.watchers[peer] = held
        for watch in tuple(channel.on_arrival):
            watch(peer)
        return held

    def stop_holding_back(self, session: SessionKey, peer: Peer) -> None:
        """Show what comes from now on at once."""
        channel = self._channels.get(session)
        if channel is not None and peer in channel.watchers:
            channel.watchers[peer] = None

    def detach(self, session: SessionKey, peer: Peer) -> None:
        """Show the session to the client no longer."""
        if self.is_attached(session, peer):
            self._open[peer] -= 1
            self._channels[session].watchers.pop(peer)
            self._forget_if_idle(session)

    def leave(self, peer: Peer) -> None:
        """Forget a client that has gone."""
        self._open.pop(peer, None)
        for session, channel in tuple(self._channels.items()):
            channel.watchers.pop(peer, None)
            self._forget_if_idle(session)

    def remember_author(self, session: SessionKey, message_id: str, peer: Peer) -> None:
        """Remember who sent a message: it is not shown its own words, and is asked first. The first
        sender of a message keeps that place until it leaves.
        """
        first = self._authors.get((session, message_id))
        if first is None or not self.is_attached(session, first):
            self._authors[session, message_id] = peer

    def withdraw(self, session: SessionKey, message_id: str, peer: Peer) -> None:
        """Forget that the client sent a message, since it will not run."""
        if self._authors.get((session, message_id)) is peer:
            del self._authors[session, message_id]

    def author(self, session: SessionKey) -> Peer | None:
        """Who sent the message of the running turn, even if it has left."""
        return self._authors.get((session, self.running(session)))

    def watchers(self, session: SessionKey) -> tuple[Peer, ...]:
        """The session's attached clients, the author of the running turn first."""
        channel = self._channels.get(session)
        if channel is None:
            return ()
        author = self.author(session)
        return tuple(sorted(channel.watchers, key=lambda peer: peer is not author))

    def attended(self) -> tuple[SessionKey, ...]:
        """The sessions that somebody is shown, the longest known first."""
        return tuple(key for key, channel in self._channels.items() if channel.watchers)

    @contextmanager
    def watching(self, session: SessionKey, arrived: Watch) -> Iterator[None]:
        """Call `arrived` for each client that attaches during the block."""
        channel = self._channel(session)
        channel.on_arrival.append(arrived)
        try:
            yield
        finally:
            channel.on_arrival.remove(arrived)
            self._forget_if_idle(session)

    def _channel(self, session: SessionKey) -> _Channel:
        channel = self._channels.get(session)
        if channel is None:
            channel = self._channels[session] = _Channel(session, self.context_window)
            channel.seq = self._numbers.pop(session, 0)
        return channel

    def _forget_if_idle(self, session: SessionKey) -> None:
        """Only the number outlives the last watcher, since numbers must not begin again."""
        channel = self._channels[session]
        if not (channel.watchers or channel.on_arrival or channel.running):
            del self._channels[session]
            if channel.seq:
                self._numbers[session] = channel.seq


class _Channel:
    """One session. A watcher's value is the queue that holds its frames back, or None."""

    __slots__ = ("backlog", "context_window", "on_arrival", "running", "seq", "session", "watchers")

    def __init__(self, session: SessionKey, context_window: int) -> None:
        self.session = session
        self.context_window = context_window
        self.seq = 0
        self.running = ""
        self.backlog: list[tuple[int, TurnEvent]] = []
        self.watchers: dict[Peer, deque[bytes] | None] = {}
        self.on_arrival: list[Watch] = []

    def show(self, event: TurnEvent, author: Peer | None) -> None:
        self.seq += 1
        shown = list(self._encode(self.seq, event)) if self.watchers else []
        if isinstance(event, AnswerWaits):  # clients that attach later get the last one, as new
            event = replace(event, is_new=True)
            self.backlog = [kept for kept in self.backlog if not isinstance(kept[1], AnswerWaits)]
        if self.running and not isinstance(event, AnswerDelayed | FactsChanged):
            self.backlog.append((self.seq, event))
        self._send(shown, author)

    def tell(self, update: Update) -> None:
        self.seq += 1
        params = update_params(self.session, update, {"agentd/seq": self.seq})
        self._send([frames.encode(frames.notification("session/update", params))])

    def _send(self, shown: Iterable[bytes], author: Peer | None = None) -> None:
        for peer, held in tuple(self.watchers.items()):
            if peer is author:
                continue
            for frame in shown:
                if held is None:
                    peer.send(frame)
                else:
                    held.append(frame)

    def shown_so_far(self) -> Iterable[bytes]:
        for seq, event in join_chunks(self.backlog):
            yield from self._encode(seq, event)

    def _encode(self, seq: int, event: TurnEvent) -> Iterator[bytes]:
        meta: dict[str, Any] = {"agentd/seq": seq}
        if self.running:
            meta["agentd/messageId"] = self.running
        for update in event_updates(event, self.context_window):
            params = update_params(self.session, update, meta)
            try:
                yield frames.encode(frames.notification("session/update", params))
            except (TypeError, ValueError):
                # A turn must not fail because a tool's input cannot be written as JSON.
                log.exception("event_not_shown", session=self.session, kind=type(event).__name__)
