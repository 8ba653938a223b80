"""Has a model exported to ONNX, in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from agentd.embedders.child import COMMAND, Child
from agentd.embedders.choice import export_folder, export_source
from agentd.embedders.environment import clean
from agentd.embedders.frames import BadFrame, Frame
from agentd.embedders.settings import ModelSettings
from agentd.errors import EmbedderFault
from agentd.paths import ensure_private_dir

SILENCE = 300.0  # seconds without a word from the process
THREADS = 2

log = structlog.get_logger()


class Exporter:
    """Exports the configured model, one export at a time."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str],
        models: Path,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`models` is the folder for what is exported."""
        self._settings = settings
        self._environ = environ
        self._models = models
        self._command = command
        self._lock = asyncio.Lock()

    async def export(self) -> dict[str, Any]:
        """`{model, dimension, agreement, folder}` of what is there now; it is used from the next
        start on. Raises EmbedderFault, with an older export untouched.
        """
        async with self._lock:
            source = await asyncio.to_thread(export_source, self._settings)
            target = export_folder(self._settings, self._models)
            made = await self._run(source, target)
        kept = ("model", "dimension", "agreement")
        return {**{key: made.head.get(key) for key in kept}, "folder": str(target)}

    async def _run(self, source: Path, target: Path) -> Frame:
        folder = ensure_private_dir(self._models)
        child = await Child.start(clean(self._environ, folder, THREADS), folder, self._command)
        order = {
            "export": str(source),
            "target": str(target),
            "name": target.name,
            "memory_limit_mb": self._settings.memory_limit_mb,
        }
        try:
            await child.send(Frame(order))
            return await _made(child)
        except (OSError, EOFError, BadFrame, TimeoutError) as error:
            cause = await child.cause(error)
            raise EmbedderFault(f"The export failed: {cause}.", cure="Try it again.") from error
        finally:
            await child.end()


async def _made(child: Child) -> Frame:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(SILENCE) as deadline:
        while not (frame := await child.receive()).head.get("ready"):
            log.info("embedder_export", progress=str(frame.head.get("progress", ""))[:200])
            deadline.reschedule(loop.time() + SILENCE)
    return frame
