"""The collections that search is measured with lose no word to the hiding of keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentd.core.redaction import Redactor

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TEXTS = sorted(
    path
    for folder in ("workspace_year", "conversations")
    for path in (BENCHMARKS / folder).rglob("*")
    if path.suffix in {".md", ".jsonl", ".toml"}
)


@pytest.mark.parametrize("folder", ["workspace_year", "conversations"])
def test_no_text_of_a_collection_looks_like_a_key(folder: str) -> None:
    texts = [path for path in TEXTS if folder in path.parts]
    assert len(texts) > 5
    held = [path.name for path in texts if Redactor().holds(path.read_text(encoding="utf-8"))]
    assert held == []


def test_a_key_in_one_of_them_would_be_seen() -> None:
    text = TEXTS[0].read_text(encoding="utf-8")
    assert Redactor().holds(f"{text} AKIAIOSFODNN7EXAMPLE")
