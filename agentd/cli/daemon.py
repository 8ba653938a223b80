"""`agentd run`, `stop`, `restart` and `status`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from agentd.cli import foreground
from agentd.cli.ask import answer, sockets
from agentd.cli.report import AsJson, ConfigFile, reporting, show
from agentd.commands.plain import counted, spent, words
from agentd.paths import daemon_places


def run(config: ConfigFile = None) -> None:
    """Run the daemon in the foreground."""
    foreground.run(config)


def stop(as_json: AsJson = False) -> None:
    """Stop the daemon and wait until it has ended."""
    import asyncio

    from agentd.cli.launch import stop as end

    with reporting(as_json=as_json):
        asyncio.run(end(sockets()))
        show({"stopped": True}, lambda _: "the daemon has stopped", as_json=as_json)


def restart(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Stop the daemon if one runs, and start it."""
    import asyncio

    from agentd.cli.launch import refuse_system_service
    from agentd.cli.launch import restart as again

    async def change() -> None:
        await refuse_system_service(sockets())
        await again(daemon_places(os.environ, config), config)

    with reporting(as_json=as_json):
        asyncio.run(change())
        show({"restarted": True}, lambda _: "the daemon has restarted", as_json=as_json)


def status(as_json: AsJson = False) -> None:
    """Show how the daemon fares."""
    answer("status", lambda result: "\n".join(_lines(result)), as_json=as_json)


def _lines(status: dict[str, Any]) -> Iterator[str]:
    from agentd.cli.times import span

    running = f"{status.get('version')}, process {status.get('pid')}"
    yield f"agentd      {running}, up {span(timedelta(seconds=status.get('uptime_s') or 0))}"
    yield f"provider    {_provider(status.get('provider') or {})}"
    yield f"sessions    {_sessions(status.get('sessions') or [])}"
    yield f"heartbeat   {_heartbeat(status.get('heartbeat') or {})}"
    yield f"compaction  {_compaction((status.get('compaction') or {}).get('last'))}"
    yield f"index       {_index(status.get('index') or {})}"
    if facts := status.get("facts"):
        yield f"facts       {_facts(facts)}"
    if (graph := status.get("graph") or {}).get("enabled"):
        yield f"graph       {_graph(graph)}"
    if (retention := status.get("retention") or {}).get("days"):
        yield f"retention   {_retention(retention)}"
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
    return f"{paused}next {words(beat.get('next_due'))}; last {told}"


def _outcome(beat: dict[str, Any]) -> str:
    outcome, reason = words(beat["outcome"]), words(beat["reason"])
    return outcome if outcome == reason else f"{outcome} ({reason})"


def _compaction(last: dict[str, Any] | None) -> str:
    if not last:
        return "none yet"
    tokens = f"{last.get('tokens_before')} → {last.get('tokens_after')} tokens"
    return f"last {words(last.get('at'))} in {last.get('session')} ({last.get('reason')}), {tokens}"


def _index(index: dict[str, Any]) -> str:
    files, chunks = (counted(index.get(f"{noun}s", 0), noun) for noun in ("file", "chunk"))
    counts = f"{files}, {chunks}, {index.get('pending', 0)} pending"
    why = f" ({index['why']})" if index.get("why") else ""
    reason = f", {index['reason']}" if index.get("reason") else ""
    return f"{counts}; {index.get('state')}, embedder {index.get('embedder')}{why}{reason}"


def _facts(facts: dict[str, Any]) -> str:
    counts = f"{facts.get('active', 0)} known, {facts.get('proposed', 0)} waiting for your yes"
    unread = facts.get("waiting", 0)
    told = f"{counts}, {counted(unread, 'conversation')} to be read" if unread else counts
    refused = facts.get("refused") or {}
    why = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in refused.items())
    return f"{told}; not kept: {why}" if why else told


def _loop(loop: dict[str, Any]) -> str:
    worst = loop.get("worst") or {}
    if not worst:
        return "not measured yet"
    usual = f"99 % of all work waits at most {loop.get('p99_ms')} ms for it"
    over = loop.get("over_limit", 0)
    limit = f"{loop.get('limit_ms', 0):.0f} ms"
    often = f"{over} times over {limit}" if over else f"never over {limit}"
    where = (worst.get("stack") or ["?"])[0]
    told = f"{worst.get('ms')} ms ({worst.get('reason')}) at {worst.get('at')}, {where}"
    return f"{usual}, {often}; worst {told}"


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
