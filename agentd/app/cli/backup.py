"""`agentd backup` and `agentd restore`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentd.app.cli.declared import alone, tell
from agentd.app.cli.report import AsJson, ConfigPath, note, reporting, show
from agentd.app.config import OutwardSetting
from agentd.app.restore import restore as put
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError, ConfigError
from agentd.core.paths import daemon_places, expanded
from agentd.interfaces.commands.plain import counted
from agentd.interfaces.commands.upkeep import UPKEEP

File = Annotated[Path, typer.Argument(metavar="FILE", help="The archive, a .tar.gz.")]


def _backup(given: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        path = str(expanded(given["file"]).absolute())
    tell(UPKEEP["backup"], {"file": path}, as_json=as_json)


backup = alone(UPKEEP["backup"], _backup)


def restore(
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Move what is there aside; it is not deleted.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Take its programs, addresses and folders without a question."
        ),
    ] = False,
    without_config: Annotated[
        bool,
        typer.Option(
            "--without-config",
            help=(
                "Leave the configuration that is here in force; that of the backup is "
                "put beside the state."
            ),
        ),
    ] = False,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup in place; the daemon must not run."""
    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        now = SystemClock("UTC").now()
        asks = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        agree = (lambda _: None) if trust else _confirm_settings if asks else _refuse_settings
        result = put(
            expanded(file),
            places,
            os.environ,
            now,
            force=force,
            agree=agree,
            with_config=not without_config,
        )
        show(result, _restored_text, as_json=as_json)


def _confirm_settings(settings: Sequence[OutwardSetting]) -> None:
    note("the configuration in this backup reaches beyond agentd:")
    for line in _lines(settings):
        note(f"  {line}")
    if not typer.confirm("Restore it with these settings?", default=False, err=True):
        raise AgentdError(
            "nothing was restored", cure="--trust takes a backup without a question, if you know it"
        )


def _refuse_settings(settings: Sequence[OutwardSetting]) -> None:
    told = "\n  ".join(_lines(settings))
    raise ConfigError(
        (
            "the configuration in this backup reaches beyond agentd, and nobody is "
            f"asked here:\n  {told}"
        ),
        cure="restore it on a terminal, which asks; or with --trust, if you know these settings",
    )


def _lines(settings: Sequence[OutwardSetting]) -> Iterator[str]:
    """Yield a line for each setting, with its whole value as JSON in ASCII: a terminal would hide
    control characters.
    """
    for one in settings:
        yield f"{one.key} = {json.dumps(one.value)}: {one.how}"


def _restored_text(result: dict[str, Any]) -> str:
    lines = [f"{counted(result['restored'], 'file')} restored; start the daemon with `agentd up`"]
    lines += [f"moved aside: {path}" for path in result["aside"]]
    if result["config"]:
        lines.append(f"not in force: the configuration of the backup, {result['config']}")
    if result["forgotten"] is None:
        lines.append(
            "if something was forgotten after the backup was made, it is known again, since no "
            "record of that is here: have it forgotten once more"
        )
    elif result["forgotten"]:
        lines.append(
            f"forgotten again: {counted(result['forgotten'], 'fact')} forgotten since the backup; "
            "the daemon erases the words when it starts"
        )
    return "\n".join(lines)
