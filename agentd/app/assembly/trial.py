"""A trial start of the daemon over copies of the user's files."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from io import StringIO
from pathlib import Path

from msgspec.structs import replace

from agentd.app.assembly.parts import open_parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.server import build_audience
from agentd.app.assembly.window import carried
from agentd.app.logs import open_log
from agentd.core.paths import daemon_places


async def try_opening(runtime: RuntimeContext) -> None:
    """Open the daemon's parts over copies in a temporary folder, then close them. Raises
    ConfigError for mistakes that only show then, such as a context window too small for the fixed
    prompt.

    The user's own files and databases are not opened, so that a running daemon is not disturbed;
    only the files that prompts contain are copied. Raises OSError, StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="agentd-check-") as folder:
        places = daemon_places({"AGENTD_HOME": folder})
        _copy(runtime, places.workspace)
        here = runtime.config.workspace.model_copy(update={"path": ""})
        config = runtime.config.model_copy(update={"workspace": here})
        with (
            open_log(config.log, places.state_dir, runtime.clock, {}, StringIO()) as output,
        ):
            copied = replace(runtime, config=config, places=places, redactor=output.redactor)
            audience = build_audience(copied)
            opened = open_parts(
                copied, audience.clients, audience.approver, shown=audience.hub, output=output
            )
            async with opened:
                pass  # a daemon would start


def _copy(runtime: RuntimeContext, workspace: Path) -> None:
    if not runtime.workspace.is_dir():
        return  # the copy is created from the template, too
    workspace.mkdir()
    for path in carried(runtime.workspace, runtime.config.workspace.daily_dir):
        copy = workspace / path.relative_to(runtime.workspace)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # the daemon skips an unreadable file, too
            shutil.copyfile(path, copy)
