"""Runs the export of a model to ONNX, in a separate process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from agentd.core.errors import EmbedderFault
from agentd.core.paths import ensure_private_dir
from agentd.memory.index.embedding.choice import export_folder, export_source
from agentd.memory.index.embedding.embedding_settings import ModelSettings
from agentd.memory.index.embedding.frames import BadFrame, Frame
from agentd.memory.index.embedding.worker import COMMAND, EmbedderProcess

log = structlog.get_logger()


_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_FOR_THE_NETWORK = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "HF_ENDPOINT",
)


def clean(
    environ: Mapping[str, str], folder: Path, threads: int, *, is_online: bool = False
) -> dict[str, str]:
    """Return the environment of an embedder process, which holds no secrets. Its home is `folder`,
    and its libraries compute with `threads` threads. Unless `is_online`, the hub's libraries are
    set to offline mode.
    """
    passed = (*_PASSED, *_FOR_THE_NETWORK) if is_online else _PASSED
    found = {name: environ[name] for name in passed if name in environ}
    found |= dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    found |= {
        "HOME": str(folder),  # where libraries look for tokens and write caches
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MALLOC_TRIM_THRESHOLD_": "1048576",  # else 60 MB used in loading stay allocated
        "CUDA_VISIBLE_DEVICES": "",
    }
    if not is_online:
        found |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return found


SILENCE = 300.0  # seconds without a message from the process until it counts as hung
THREADS = 2


class Exporter:
    """Exports the configured model, one export at a time."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str],
        models: Path,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`models` is the folder for exported models."""
        self._settings = settings
        self._environ = environ
        self._models = models
        self._command = command
        self._lock = asyncio.Lock()

    async def export(self) -> dict[str, Any]:
        """Export the model and return `{model, dimension, agreement, folder}`; the daemon uses the
        export from its next start on. Raises EmbedderFault, and leaves an older export untouched.
        """
        async with self._lock:
            source = await asyncio.to_thread(export_source, self._settings)
            target = export_folder(self._settings, self._models)
            made = await self._run(source, target)
        kept = ("model", "dimension", "agreement")
        return {**{key: made.head.get(key) for key in kept}, "folder": str(target)}

    async def _run(self, source: Path, target: Path) -> Frame:
        folder = ensure_private_dir(self._models)
        child = await EmbedderProcess.start(
            clean(self._environ, folder, THREADS), folder, self._command
        )
        order = {
            "export": str(source),
            "target": str(target),
            "name": target.name,
            "memory_limit_mb": self._settings.memory_limit_mb,
        }
        try:
            await child.send(Frame(order))
            return await _await_export(child)
        except (OSError, EOFError, BadFrame, TimeoutError) as error:
            cause = await child.cause(error)
            raise EmbedderFault(f"The export failed: {cause}.", cure="Try it again.") from error
        finally:
            await child.end()


async def _await_export(child: EmbedderProcess) -> Frame:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(SILENCE) as deadline:
        while not (frame := await child.receive()).head.get("ready"):
            log.info("embedder_export", progress=str(frame.head.get("progress", ""))[:200])
            deadline.reschedule(loop.time() + SILENCE)
    return frame
