"""Settings of the flush: `[compaction.memory_flush]`."""

from __future__ import annotations

from pydantic import Field

from agentd.domain.settings import Duration, Settings, parse_duration


class MemoryFlushSettings(Settings):
    """How a conversation is saved before it leaves the context."""

    enabled: bool = Field(True, description="save durable memories before anything is cut")
    soft_threshold_tokens: int = Field(
        4000, ge=1, description="how many tokens before compaction the flush is due"
    )
    system_prompt: str = Field("", description="replaces the flush's system prompt; empty: ours")
    user_prompt: str = Field("", description="replaces the flush's user prompt; empty: ours")
    timeout: Duration = Field(parse_duration("120s"), description="how long one try may take")
