"""`agentd run`, `stop`, `restart` and `status`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import typer

from agentd.cli.ask import ask, sockets
from agentd.cli.plain import words
from agentd.cli.report import AsJson, ConfigPath, reporting, show
from agentd.paths import daemon_places


def run(config: ConfigPath = None) -> None:
    """Run the daemon in the foreground."""
    from agentd.daemon import main

    with reporting():
        raise typer.Exit(main(config))


def stop(as_json: AsJson = False) -> None:
    """Stop the daemon and wait until it has ended."""
    import asyncio

    from agentd.cli.launch import stop as end

    with reporting(as_json=as_json):
        asyncio.run(end(sockets()))
        show({"stopped": True}, lambda _: "the daemon has stopped", as_json=as_json)


def restart(config: ConfigPath = None, as_json: AsJson = False) -> None:
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
    with reporting(as_json=as_json):
        show(ask("status"), lambda result: "\n".join(_lines(result)), as_json=as_json)


def _lines(status: dict[str, Any]) -> Iterator[str]:
    provider = status.get("provider") or {}
    beat = status.get("heartbeat") or {}
    cost = status.get("cost") or {}
    last = (status.get("compaction") or {}).get("last")
    running = f"{status.get('version')}, process {status.get('pid')}"
    model = f"{provider.get('kind')} {provider.get('model')} ({provider.get('why')})"
    next_due = f"next {words(beat.get('next_due'))}" if beat.get("enabled") else "off"
    yield f"agentd      {running}, up {_span(status.get('uptime_s') or 0)}"
    yield f"provider    {model}"
    yield f"sessions    {len(status.get('sessions') or [])}"
    yield f"heartbeat   {next_due}, last {words(beat.get('last'))}"
    yield f"compaction  last {words(last)}"
    yield f"index       {words(status.get('index'))}"
    yield f"cost        today ${cost.get('today_usd', 0):.2f}, month ${cost.get('month_usd', 0):.2f}"
    for problem in status.get("problems") or []:
        yield f"problem     {problem['text']} ({problem['code']})"
        if problem.get("cure"):
            yield f"            → {problem['cure']}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown[:2]) or "0 s"
