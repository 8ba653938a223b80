"""The graphs that ship with agentd."""

from __future__ import annotations

from importlib.resources import files

NAMES = ("schema", "example_memory")


def example(name: str) -> str:
    """The text of one of `NAMES`: `schema` tells what records hold, `example_memory` is a record."""
    return (files("agentd.graph.zero") / f"{name}.0").read_text(encoding="utf-8")
