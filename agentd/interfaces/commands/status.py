"""`status`, and stopping the daemon."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentd.core.health import Problem
from agentd.interfaces.commands.declaration import Group
from agentd.interfaces.commands.plain import counted, fields, span, spent, words

if TYPE_CHECKING:
    from agentd.core.beat import HeartbeatStatus
    from agentd.core.errors import BudgetReached
    from agentd.core.ports import Clock, Ledger
    from agentd.core.retention import Retained
    from agentd.core.search import IndexState

STATUS = Group("")

_SESSIONS = 50  # the last used ones; `sessions list` has all
# What a search has to do without at the moment (SearchShortfall), and what kept the loop from work.
_SHORTFALLS: Mapping[str, str] = {
    "warming": "what is alike in meaning is still being loaded",
    "indexing": "the last changes cannot be found yet",
    "embedder_down": "the embedder does not answer",
    "embedder_slow": "the embedder takes too long to answer",
    "vectors_missing": "not all can be found by its meaning yet",
}
_CAUSES: Mapping[str, str] = {
    "computing": "agentd computed",
    "interpreter": "another thread of agentd computed",
    "blocked": "a call waited",
    "machine": "the machine was busy",
}
_MARK = re.compile(r"-[0-9a-f]{12}(?:-[0-9.]+)?(?=\+|$)")  # digest of a model's files, and weight


async def _nothing() -> None:
    """Return None: no budget is checked."""


class StatusParts(Struct, frozen=True):
    """The sources of `agentd status`.

    `started` is the clock's monotonic second at which the daemon began. `provider` returns `{kind,
    model, why, effective_window}`, `compaction` the last one or None, `embedder` `{provider, why}`,
    `graph` `{enabled, concepts, facts, episodes, consolidated}`, `facts` `{active, proposed,
    refused, waiting, merged}`, empty while facts are off. `loop` returns the delays of the event
    loop, `sessions` the given number of last used sessions, `alerts` for each sink what `agentd
    alerts sinks` shows. `refused` returns why the budget would refuse every message, or None.
    """

    version: str
    started: float
    provider: Callable[[], Mapping[str, Any]]
    heartbeat: Callable[[], Awaitable[HeartbeatStatus]]
    compaction: Callable[[], Mapping[str, Any] | None]
    index: Callable[[], Awaitable[IndexState]]
    retention: Callable[[], Retained]
    sessions: Callable[[int], Awaitable[Sequence[Mapping[str, Any]]]]
    ledger: Ledger
    graph: Callable[[], Awaitable[Mapping[str, Any]]]
    facts: Callable[[], Awaitable[Mapping[str, Any]]]
    alerts: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
    embedder: Callable[[], Mapping[str, str]] = dict
    loop: Callable[[], Mapping[str, Any]] = dict
    mcp: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    web: Callable[[], Mapping[str, Any]] = dict
    problems: Callable[[], tuple[Problem, ...]] = tuple
    refused: Callable[[], Awaitable[BudgetReached | None]] = _nothing


def _as_text(status: dict[str, Any]) -> str:
    return "\n".join(_lines(status))


class StatusCommands:
    """The commands `status` and those that stop the daemon."""

    def __init__(self, parts: StatusParts, clock: Clock, stop: Callable[[], None]) -> None:
        self._parts = parts
        self._clock = clock
        self._stop = stop

    @STATUS.command(_as_text)
    async def status(self) -> dict[str, Any]:
        """Show how the daemon fares."""
        parts = self._parts
        index = await parts.index()
        facts = dict(await parts.facts())
        return {
            "version": parts.version,
            "pid": os.getpid(),
            "uptime_s": round(self._clock.monotonic() - parts.started, 3),
            "provider": dict(parts.provider()),
            "sessions": list(await parts.sessions(_SESSIONS)),
            "heartbeat": (await parts.heartbeat()).as_json(),
            "compaction": {"last": parts.compaction()},
            "index": {**index.as_json(), **parts.embedder()},
            "retention": parts.retention().as_json(),
            "facts": facts,
            "graph": dict(await parts.graph()),
            "loop": dict(parts.loop()),
            "mcp": [dict(server) for server in parts.mcp()],
            "web": dict(parts.web()),
            "alerts": [dict(sink) for sink in await parts.alerts()],
            "cost": await self._cost(),
            "problems": [one.as_json() for one in (*await self._problems(), *_undecided(facts))],
        }

    async def _problems(self) -> tuple[Problem, ...]:
        refused = await self._parts.refused()
        if refused is None:
            return self._parts.problems()
        text = f"no message is answered: {refused.message}"
        return (*self._parts.problems(), Problem("budget", text, refused.cure))

    async def _cost(self) -> dict[str, Any]:
        today = self._clock.now().astimezone(self._clock.zone)
        today = today.replace(hour=0, minute=0, second=0, microsecond=0)
        today_tokens, today_usd = await self._parts.ledger.spending(today)
        month_tokens, month_usd = await self._parts.ledger.spending(today.replace(day=1))
        cached, read = await self._parts.ledger.cache_use(today.replace(day=1))
        parts = await self._parts.ledger.breakdown(today.replace(day=1))
        return {
            "today_usd": today_usd,
            "month_usd": month_usd,
            "today_tokens": today_tokens,
            "month_tokens": month_tokens,
            "cache_hit_ratio": round(cached / read, 3) if read else 0.0,
            "month": [
                {"session": session, "origin": str(origin), "tokens": tokens, "usd": usd}
                for session, origin, tokens, usd in parts[:_SESSIONS]
            ],
        }

    @STATUS.command(fields, line=False)
    async def stop(self) -> dict[str, Any]:
        """Ask the daemon to end."""
        self._stop()
        return {"stopping": True, "pid": os.getpid()}


def _undecided(facts: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return a problem if facts wait for the owner's yes."""
    count = facts.get("proposed", 0)
    if not count:
        return ()
    text = f"{'1 fact waits' if count == 1 else f'{count} facts wait'} for your yes"
    cure = "`agentd facts pending` lists what to accept or reject"
    return (Problem("facts_proposed", text, cure),)


def _lines(status: dict[str, Any]) -> Iterator[str]:
    running = f"{status.get('version')}, process {status.get('pid')}"
    yield f"agentd      {running}, up {span(timedelta(seconds=status.get('uptime_s') or 0))}"
    yield f"provider    {_provider(status.get('provider') or {})}"
    yield f"sessions    {_sessions(status.get('sessions') or [])}"
    yield f"heartbeat   {_heartbeat(status.get('heartbeat') or {})}"
    yield f"compaction  {_compaction((status.get('compaction') or {}).get('last'))}"
    yield f"index       {_index(status.get('index') or {})}"
    yield from _about_facts(status.get("facts") or {})
    if (graph := status.get("graph") or {}).get("enabled"):
        yield f"graph       {_graph(graph)}"
    if (retention := status.get("retention") or {}).get("days"):
        yield f"retention   {_retention(retention)}"
    for server in status.get("mcp") or []:
        yield f"mcp         {_server(server)}"
    if (web := status.get("web") or {}).get("enabled"):
        yield f"web         {_web(web)}"
    if sinks := status.get("alerts"):
        yield f"alerts      {_sinks(sinks)}"
    if loop := status.get("loop"):
        yield f"loop        {_loop(loop)}"
    yield f"cost        {_cost(status.get('cost') or {})}"
    for problem in status.get("problems") or []:
        yield f"problem     {problem['text']} ({problem['code']})"
        if problem.get("cure"):
            yield f"            → {problem['cure']}"


def _provider(provider: dict[str, Any]) -> str:
    names = dict.fromkeys((str(provider.get("kind")), str(provider.get("model"))))
    return f"{' '.join(names)} ({provider.get('why')})"


def _sessions(sessions: list[dict[str, Any]]) -> str:
    if not sessions:
        return "none"
    busy = sum(bool(session.get("busy")) for session in sessions)
    return f"{len(sessions)}, {busy} at work; last used {words(sessions[0].get('updated_at'))}"


def _heartbeat(beat: dict[str, Any]) -> str:
    last = beat.get("last") or {}
    told = f"{last['at']}: {_outcome(last)}" if last else "none yet"
    if not beat.get("enabled"):
        return f"off; last {told}"
    paused = f"paused until {beat['paused_until']}; " if beat.get("paused_until") else ""
    used, most = beat.get("tokens_today", 0), beat.get("daily_tokens", 0)
    spent = f"; {used:,} of {most:,} tokens today" if most else f"; {used:,} tokens today"
    return f"{paused}next {words(beat.get('next_due'))}; last {told}{spent}"


def _outcome(beat: dict[str, Any]) -> str:
    outcome, reason = words(beat["outcome"]), words(beat["reason"])
    return outcome if outcome == reason else f"{outcome} ({reason})"


def _compaction(last: dict[str, Any] | None) -> str:
    if not last:
        return "none yet"
    where = f"last {words(last.get('at'))} in {last.get('session')} ({last.get('reason')})"
    if not last.get("compacted"):  # a flush takes nothing away
        return f"{where}, nothing left out of {last.get('tokens_before')} tokens"
    return f"{where}, {last.get('tokens_before')} → {last.get('tokens_after')} tokens"


def _index(index: dict[str, Any]) -> str:
    files, chunks = (counted(index.get(f"{noun}s", 0), noun) for noun in ("file", "chunk"))
    counts = f"{files}, {chunks}, {index.get('pending', 0)} pending"
    why = f" ({index['why']})" if index.get("why") else ""
    lacks = index.get("reason")
    reason = f"; {_SHORTFALLS.get(lacks, words(lacks))}" if lacks else ""
    return (
        f"{counts}; {index.get('state')}, embedder "
        f"{model_names(str(index.get('embedder')))}{why}{reason}"
    )


def model_names(embedder: str) -> str:
    """Return the names of an embedder's models, without the digests by which their vectors are told
    apart.
    """
    return " and ".join(_MARK.sub("", embedder).split("+"))


def _about_facts(facts: dict[str, Any]) -> Iterator[str]:
    if "active" in facts:
        yield f"facts       {_facts(facts)}"
    if told := _forgotten(facts):
        yield f"forgotten   {told}"


def _facts(facts: dict[str, Any]) -> str:
    counts = f"{facts.get('active', 0)} known, {facts.get('proposed', 0)} waiting for your yes"
    unread = facts.get("waiting", 0)
    told = f"{counts}, {counted(unread, 'conversation')} to be read" if unread else counts
    if merged := facts.get("merged", 0):
        told += (
            f"; the last review merged {merged} into others: `agentd facts "
            "changes`, `facts undo ID`"
        )
    refused = facts.get("refused") or {}
    why = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in refused.items())
    return f"{told}; not kept: {why}" if why else told


def _forgotten(facts: dict[str, Any]) -> str:
    if erasing := facts.get("erasing"):
        return f"still to be erased: {', '.join(erasing)}"
    erased = facts.get("erased")
    return f"erased everywhere, {words(erased)}" if erased else ""


def _loop(loop: dict[str, Any]) -> str:
    worst = loop.get("worst") or {}
    if not worst:
        return "not measured yet"
    usual = f"99 % of all work waits at most {loop.get('p99_ms')} ms for it"
    over = loop.get("over_limit", 0)
    limit = f"{loop.get('limit_ms', 0):.0f} ms"
    often = f"{counted(over, 'time')} over {limit}" if over else f"never over {limit}"
    why = str(worst.get("reason"))
    told = f"{worst.get('ms')} ms ({_CAUSES.get(why, why)}), {worst.get('at')}"
    return f"{usual}, {often}; worst {told}"


def _server(server: dict[str, Any]) -> str:
    why = f" ({words(server['reason'])})" if server.get("reason") else ""
    counts = [counted(server.get("tools", 0), "tool")]
    counts += [f"{server[key]} {key}" for key in ("denied", "changed") if server.get(key)]
    return f"{server.get('name')}: {server.get('state')}{why}, {', '.join(counts)}"


def _web(web: dict[str, Any]) -> str:
    tools = ", ".join(f"{name} {one}" for name, one in (web.get("tools") or {}).items())
    service = f", by {web['service']}" if web.get("service") else ""
    why = f" ({words(web['reason'])})" if web.get("reason") else ""
    return f"{tools or 'no tool'}{service}{why}"


def _sinks(sinks: list[dict[str, Any]]) -> str:
    """Return the sinks in words; of those with waiting alerts also the reason."""
    return "; ".join(_sink(sink) for sink in sinks)


def _sink(sink: dict[str, Any]) -> str:
    told = [f"{sink[key]} {key}" for key in ("waiting", "failed") if sink.get(key)]
    if told and sink.get("next_try"):
        told.append(f"next {words(sink['next_try'])}")
    if not told:
        return str(sink.get("sink"))
    why = f" ({str(sink['error']).rstrip('.')})" if sink.get("error") else ""
    return f"{sink.get('sink')}: {', '.join(told)}{why}"


def _graph(graph: dict[str, Any]) -> str:
    nouns = ("concept", "fact", "episode")
    counts = ", ".join(counted(graph.get(f"{noun}s", 0), noun) for noun in nouns)
    done = graph.get("consolidated")
    if not done:
        return f"{counts}; not consolidated yet"
    told = f"{done['promoted']} promoted, {done['swept']} swept"
    return f"{counts}; consolidated {words(done['at'])}: {told}"


def _retention(retention: dict[str, Any]) -> str:
    told = f"after {counted(retention['days'], 'day')}; last {words(retention.get('last'))}"
    why = ", ".join(f"{n} {reason}" for reason, n in (retention.get("kept") or {}).items())
    kept = f", unsaved ones kept: {why}" if why else ""
    return f"{told}, {counted(retention.get('removed', 0), 'row')} erased{kept}"


def _cost(cost: dict[str, Any]) -> str:
    told = []
    for name, key in (("today", "today"), ("this month", "month")):
        usd, tokens = cost.get(f"{key}_usd", 0), cost.get(f"{key}_tokens", 0)
        told.append(
            f"{name} {spent(usd, tokens)}" + (f" ({counted(tokens, 'token')})" if usd else "")
        )
    return "; ".join(told)
