"""`agentd config`: whether the configuration is right, and what is in force."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentd.app.assembly.alerting import build_targets
from agentd.app.assembly.ground import Ground
from agentd.app.assembly.model import check_model
from agentd.app.assembly.trial import try_opening
from agentd.app.assembly.window import is_surely_enough
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.app.config import describe, load, placed, read
from agentd.core.clock import SystemClock
from agentd.core.paths import Places, daemon_places
from agentd.core.redaction import Redactor
from agentd.engine.budget import Budget
from agentd.interfaces.commands.plain import table
from agentd.storage.ownership import configuration

if TYPE_CHECKING:
    from agentd.app.config import Config

app = CommandGroup()


@app.command()
def check(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Report every mistake in the configuration at once; exit code 78 if there is any."""
    places = daemon_places(os.environ, config)
    file = places.config_file
    with reporting(as_json=as_json):
        loose = configuration(file, os.getuid(), mend=False)
        read = load(file, os.environ)
        placed(read, places)
        check_model(read, os.environ)
        _check_window(read, places)
        _check_alerts(read)
        exists = file.exists()
        warnings = [loose] if loose else []
        result = {"ok": True, "file": str(file), "exists": exists, "warnings": warnings}
        told = (
            "ok"
            if exists
            else "there is no such file; agentd's defaults hold (`agentd init` makes it)"
        )
        show(
            result, lambda _: "\n".join([f"{file}: {told}", *_advice(file, loose)]), as_json=as_json
        )


def _check_window(read: Config, places: Places) -> None:
    """Raises ConfigError where the daemon would, for a window that the fixed prompt alone fills."""
    clock = SystemClock(read.agent.timezone)
    ground = Ground(read, places, clock, dict(os.environ), Budget(read.budget))
    if not is_surely_enough(read, ground.limits, ground.workspace):
        asyncio.run(try_opening(ground))


def _check_alerts(read: Config) -> None:
    """Raises ConfigError for an address that is none, or without its secret; nothing is sent."""
    if not read.alerts.targets:
        return

    async def check() -> None:
        for sink in build_targets(read.alerts, os.environ, Redactor()):
            await sink.check()

    asyncio.run(check())


@app.command("show")
def show_(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show every key, its value in force, and where the value comes from."""
    file = daemon_places(os.environ, config).config_file
    with reporting(as_json=as_json):
        settings = [
            {"key": one.key, "value": one.value, "source": one.origin}
            for one in describe(read(file, os.environ))
        ]
        show(
            {"file": str(file), "settings": settings},
            lambda result: table(result["settings"], ("key", "value", "source"), "no keys"),
            as_json=as_json,
        )


def _advice(file: Path, loose: str) -> Iterator[str]:
    if loose:
        yield f"{loose}; the daemon changes that when it starts, or do it now: chmod go= {file}"
