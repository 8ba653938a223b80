"""Decides from file sizes alone whether the model's window is large enough for the fixed prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentd.app.config import Config
from agentd.engine.compaction.plan import Thresholds

_BUILT_IN = 4096  # tokens; the system prompt and the tools have fewer
_FACTS = "memory/facts.md"
_DAILY = 40  # daily notes; fewer can be injected


def is_surely_enough(config: Config, limits: Thresholds, workspace: Path) -> bool:
    """Whether the daemon will certainly not refuse to start because of its window; if False, it may
    refuse. Blocks. Raises OSError.
    """
    # A text never has more tokens than bytes.
    size = sum(path.stat().st_size for path in carried(workspace, config.workspace.daily_dir))
    injected = min(config.workspace.max_total_chars * 4, size)
    return limits.flush_at >= 2 * (injected + _BUILT_IN + config.facts.prompt_tokens)


def carried(workspace: Path, daily_dir: str) -> Iterator[Path]:
    """Yield the files whose text prompts contain, and the page of facts."""
    yield from sorted(workspace.glob("*.md"))
    yield from sorted((workspace / daily_dir).glob("[0-9]*.md"))[-_DAILY:]
    if (workspace / _FACTS).is_file():
        yield workspace / _FACTS
