"""Settings of compaction: `[compaction]`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentd.core.settings import PositiveDuration, Settings
from agentd.core.times import parse_duration


class CompactionSettings(Settings):
    """When the context shrinks, and to what."""

    mode: Literal["reserve", "ratio"] = Field(
        "reserve", description='"reserve": window minus a reserve; "ratio": three quarters of it'
    )
    reserve_tokens: int = Field(
        20_000, ge=1, description="tokens kept free for the answer, at most a quarter of the window"
    )
    tail_ratio: float = Field(
        0.4,
        gt=0,
        le=0.6,
        description="share of the window that recent messages keep, word for word",
    )
    summary_prompt: str = Field(
        "", description="instructions for the summary; empty: the built-in ones"
    )
    summary_model: str = Field("", description="model that summarises; empty: the chat's")
    timeout: PositiveDuration = Field(
        parse_duration("180s"), description="how long one model call for a summary may take"
    )
    retry_daily_tokens: int = Field(
        500_000,
        ge=0,
        description="tokens that summaries may use in a day before failed ones are not tried again;"
        " 0: no limit",
    )
    hook_timeout: PositiveDuration = Field(
        parse_duration("10m"),
        description="how long flushing before a compaction may take for each window that is cut",
    )
    background: bool = Field(
        True, description="make room after a reply rather than before the next one"
    )
