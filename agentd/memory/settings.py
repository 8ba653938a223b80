"""Settings of the flush, `[compaction.memory_flush]`, and of what is indexed, in
`[memory_search]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentd.core.settings import NamedPaths, PositiveDuration, Settings, parse_named_paths
from agentd.core.times import parse_duration


class MemoryFlushSettings(Settings):
    """How a conversation is saved before it leaves the context."""

    enabled: bool = Field(True, description="save durable memories before anything is cut")
    soft_threshold_tokens: int = Field(
        4000, ge=1, description="how many tokens before compaction the flush is due"
    )
    system_prompt: str = Field("", description="replaces the flush's system prompt; empty: ours")
    user_prompt: str = Field("", description="replaces the flush's user prompt; empty: ours")
    timeout: PositiveDuration = Field(
        parse_duration("120s"), description="how long one try may take"
    )


class IndexSettings(Settings):
    """What is indexed, and in which pieces."""

    chunker: Literal["paragraphs", "lines", "words", "tokens"] = Field(
        "paragraphs", description="how notes are cut: paragraphs, lines, words or tokens"
    )
    chunk_size: int | None = Field(
        None,
        ge=10,
        description=(
            "of a piece at most: 200 tokens for paragraphs, 20 lines, 800 words, 400 tokens"
        ),
    )
    chunk_overlap: float | None = Field(
        None,
        ge=0,
        le=0.5,
        description="share of a piece that the next repeats: words 0.15, tokens 0.2",
    )
    index_transcripts: bool = Field(
        True, description="find what was said in conversations; off: in notes alone"
    )
    index_delta_messages: int = Field(
        0, ge=0, description="new messages that a session gathers before they are indexed; 0: none"
    )
    index_delta_bytes: int = Field(
        0, ge=0, description="the same in bytes; of the two, what is reached first counts"
    )
    extra_paths: NamedPaths = Field(
        (), description='other folders and files to find things in, "NAME=PATH"; spelled @NAME/file'
    )
    watch: bool = Field(
        True, description="index notes when they are saved; off: within half a minute"
    )

    def extras(self) -> Mapping[str, Path]:
        """The extra paths by name."""
        return parse_named_paths(self.extra_paths)
