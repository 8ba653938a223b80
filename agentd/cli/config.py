"""`agentd config`: whether the configuration is right, and what is in force."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentd.cli.group import Group
from agentd.cli.plain import table
from agentd.cli.report import AsJson, ConfigFile, reporting, show
from agentd.paths import daemon_places

app = Group("Check and show the configuration.")


@app.command()
def check(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Report every mistake in the configuration at once; exit code 78 if there is any."""
    from agentd.assembly.model import check_model
    from agentd.config import load, placed
    from agentd.ownership import configuration

    places = daemon_places(os.environ, config)
    file = places.config_file
    with reporting(as_json=as_json):
        loose = configuration(file, os.getuid(), mend=False)
        read = load(file, os.environ)
        placed(read, places)
        check_model(read, os.environ)
        result = {"ok": True, "file": str(file), "warnings": [loose] if loose else []}
        show(result, lambda _: "\n".join([f"{file}: ok", *_advice(file, loose)]), as_json=as_json)


@app.command("show")
def show_(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show every key, its value in force, and where the value comes from."""
    from agentd.config import describe, read

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
