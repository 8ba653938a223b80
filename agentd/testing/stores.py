"""Doubles of the ledger, the outbox and the search index."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from agentd.core.alert import Alert, Delivery, DeliveryProgress, DeliveryState, NewAlert
from agentd.core.errors import NotFound
from agentd.core.money import BUILT_IN, Cap, Charge
from agentd.core.ports import Clock
from agentd.core.search import (
    Audience,
    Chunk,
    Hit,
    IndexState,
    LinePatch,
    SearchQuery,
    SearchResult,
    Source,
)
from agentd.core.turn import (
    Origin,
    SessionKey,
    Usage,
)


class MemoryLedger:
    """A Ledger in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.charges: list[tuple[datetime, SessionKey, Origin, str, Usage, float]] = []

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        for cap in caps:
            cap.check(await self.spending(cap.since, cap.origin), usage.total_tokens, cost_usd)
        entry = (self._clock.now(), SessionKey(""), origin, model, usage, cost_usd)
        self.charges.append(entry)
        return len(self.charges)

    async def charge(
        self,
        session: SessionKey,
        origin: Origin,
        model: str,
        usage: Usage,
        cost_usd: float,
        *,
        reservation: int | None = None,
    ) -> None:
        if reservation is None:
            self.charges.append((self._clock.now(), session, origin, model, usage, cost_usd))
        else:
            at = self.charges[reservation - 1][0]
            self.charges[reservation - 1] = (at, session, origin, model, usage, cost_usd)

    async def spending(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        counted = [c for c in self._since(since) if origin in (None, c[2])]
        return sum(c[4].total_tokens for c in counted), sum(c[5] for c in counted)

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        sums: dict[tuple[SessionKey, Origin], tuple[int, float]] = {}
        for _, session, origin, _, usage, usd in self._since(since):
            tokens, cost = sums.get((session, origin), (0, 0.0))
            sums[session, origin] = (tokens + usage.total_tokens, cost + usd)
        rows = ((*key, *value) for key, value in sums.items())
        return tuple(sorted(rows, key=lambda r: (-r[3], -r[2], r[0], r[1])))

    async def entries(self) -> tuple[Charge, ...]:
        return tuple(Charge(*c) for c in self.charges)

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        used = [
            usage
            for _, _, origin, _, usage, _ in self._since(since)
            if origin is not Origin.EMBEDDING
        ]
        return sum(u.cache_read_tokens for u in used), sum(u.prompt_tokens for u in used)

    def _since(
        self, since: datetime
    ) -> list[tuple[datetime, SessionKey, Origin, str, Usage, float]]:
        until = self._clock.now() + timedelta(days=1)
        return [c for c in self.charges if since <= c[0] <= until and c[3] != BUILT_IN]


class MemoryOutbox:
    """An Outbox in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alerts: dict[int, Alert] = {}
        self._digests: dict[int, str] = {}

    def put_at(self, alert_id: int | None) -> datetime | None:
        return None if alert_id is None else self._alerts[alert_id].at

    def repeated_by(self, alert: NewAlert) -> int | None:
        now = self._clock.now()
        told = (a.id for a in self._alerts.values() if self._is_repetition(a, alert, now))
        return max(told, default=None)

    async def put(self, alert: NewAlert) -> Alert | None:
        now = self._clock.now()
        if self.repeated_by(alert) is not None:
            return None
        new_id = len(self._alerts) + 1
        self._digests[new_id] = alert.digest
        stored = Alert(
            new_id,
            now,
            alert.text,
            alert.origin,
            alert.to,
            handovers=tuple(
                DeliveryProgress(sink, next_try=now) for sink in dict.fromkeys(alert.sinks)
            ),
            tainted=alert.tainted,
            severity=alert.severity,
        )
        self._alerts[new_id] = stored
        return stored

    async def due(self, recovered: Collection[str] = ()) -> tuple[Delivery, ...]:
        now = self._clock.now()
        waiting = sorted(self._waiting(), key=lambda found: (found[0].id, found[2], found[1].sink))
        far = now + timedelta(days=2)
        return tuple(
            Delivery(alert, one.sink, one.tries)
            for alert, one, at in waiting
            if at <= now
            or at > far
            or (one.tried_at or alert.at) > now
            or (one.tries and one.sink in recovered)
        )

    async def next_due(self) -> datetime | None:
        return min((at for _, _, at in self._waiting()), default=None)

    async def mark_sent(self, alert_id: int, sink: str) -> None:
        self._change(alert_id, sink, state=DeliveryState.SENT, next_try=None, error="")

    async def retry(
        self, alert_id: int, sink: str, until: datetime | None, error: str = ""
    ) -> None:
        state = DeliveryState.FAILED if until is None else DeliveryState.PENDING
        self._change(alert_id, sink, state=state, next_try=until, error=error)

    async def hold(self, alert_id: int, sink: str, until: datetime) -> None:
        now = self._clock.now()
        held = [
            at
            for _, one, at in self._waiting()
            if one.sink == sink and not one.tries and now < at < until
        ]
        alert = self._alerts[alert_id]
        self._alerts[alert_id] = replace(
            alert,
            handovers=tuple(
                replace(one, next_try=min(held, default=until)) if one.sink == sink else one
                for one in alert.handovers
            ),
        )

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        newest = [a for a in reversed(self._alerts.values()) if not (unacked and a.acked)]
        return tuple(map(_as_read, newest[:limit]))

    async def ack(self, alert_id: int) -> Alert:
        if alert_id not in self._alerts:
            raise NotFound(f"there is no alert {alert_id}")
        self._alerts[alert_id] = replace(self._alerts[alert_id], acked=True)
        return _as_read(self._alerts[alert_id])

    def _is_repetition(self, before: Alert, alert: NewAlert, now: datetime) -> bool:
        is_recent = now - timedelta(hours=24) < before.at <= now
        if self._digests[before.id] != alert.digest or not is_recent:
            return False
        if before.tainted and not alert.tainted:
            return False
        tried = (before.delivered.get(sink, DeliveryState.FAILED) for sink in alert.told_by)
        return before.acked or any(state is not DeliveryState.FAILED for state in tried)

    def _waiting(self) -> list[tuple[Alert, DeliveryProgress, datetime]]:
        return [
            (alert, one, one.next_try)
            for alert in self._alerts.values()
            for one in alert.handovers
            if not alert.acked and one.state is DeliveryState.PENDING and one.next_try is not None
        ]

    def _change(self, alert_id: int, sink: str, **changes: Any) -> None:
        alert, now = self._alerts[alert_id], self._clock.now()
        self._alerts[alert_id] = replace(
            alert,
            handovers=tuple(
                replace(one, tries=one.tries + 1, tried_at=now, **changes)
                if one.sink == sink
                else one
                for one in alert.handovers
            ),
        )


def _as_read(alert: Alert) -> Alert:
    if not alert.acked:
        return alert
    return replace(alert, handovers=tuple(one.once_acked() for one in alert.handovers))


class MemoryIndexDouble:
    """A MemoryIndex that counts the words of the query in every chunk."""

    epoch = 0

    def __init__(self) -> None:
        self._files: dict[str, tuple[Source, str, tuple[Chunk, ...]]] = {}

    async def digests(self, source: Source) -> Mapping[str, str]:
        return {path: f[1] for path, f in self._files.items() if f[0] is source}

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        by_path = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
        held = self._files[path][2] if path in self._files else ()
        chunks = (*(chunk for chunk in held if chunk.start_line < since), *chunks)
        self._files[path] = (chunks[0].source if chunks else by_path, digest, chunks)

    async def patch(self, path: str, digest: str, patches: Sequence[LinePatch[Chunk]]) -> None:
        held = self._files[path][2]
        kept = [c for c in held if not any(p.first <= c.start_line < p.end for p in patches)]
        moved = [c.moved(sum(p.by for p in patches if p.end <= c.start_line)) for c in kept]
        pieces = [piece for one in patches for piece in one.pieces]
        await self.replace(path, digest, sorted((*moved, *pieces), key=lambda c: c.start_line))

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        held = self._files[path][2] if path in self._files else ()
        await self.replace(path, digest, (*held, *chunks))

    async def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._files.pop(path, None)

    async def erase(self, paths: Sequence[str]) -> None:
        await self.remove(paths)

    async def outdate(self) -> None:
        self._files = {path: (source, "", held) for path, (source, _, held) in self._files.items()}

    async def verify(self) -> None:
        pass

    async def complete(self) -> None:
        pass

    async def settle(self) -> None:
        pass

    async def search(self, query: SearchQuery, audience: Audience) -> SearchResult:
        words = set(re.findall(r"[^\W_]+", query.text.casefold()))
        if not words:
            return SearchResult((), "empty_query")
        seen = [c for f in self._files.values() for c in f[2] if audience.sees(c.scope)]
        if not seen:
            return SearchResult((), "nothing_indexed")
        hits = [
            Hit(chunk, score, {"keyword": score})
            for chunk in seen
            if (query.sources is None or chunk.source in query.sources)
            and (score := 0.9 * _share(words, chunk.text.casefold())) > 0
        ]
        hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
        return SearchResult(tuple(hits[: query.limit]), "" if hits else "no_match")

    async def state(self) -> IndexState:
        return IndexState(
            len(self._files), sum(len(f[2]) for f in self._files.values()), 0, "ready"
        )


def _share(words: set[str], text: str) -> float:
    held = set(re.findall(r"[^\W_]+", text))
    return sum(w in held or (not w.isascii() and w in text) for w in words) / len(words)
