"""Settings of turns, `[agent]`, and of what they may call, `[tools]`."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from agentd.core.settings import Duration, PositiveDuration, Settings, ZoneName
from agentd.core.times import parse_duration


class AgentSettings(Settings):
    """How turns run."""

    timezone: ZoneName = Field("", description="IANA zone of the owner; empty: the system's")
    max_model_calls: int = Field(
        25, ge=1, le=500, description="model calls in one turn before it stops"
    )
    max_queued: int = Field(16, ge=1, le=1000, description="prompts that may wait for one session")
    max_concurrent_turns: int = Field(
        16, ge=1, le=256, description="turns that run at once, over all sessions"
    )
    tool_timeout: PositiveDuration = Field(
        parse_duration("60s"),
        description="how long a tool may take, waiting for a permission aside",
    )
    idle_reset: Duration = Field(
        timedelta(0),
        description=(
            'a session starts over, memories saved, when you write after so long; "0m": never'
        ),
    )
    max_tool_output: int = Field(
        32_000, ge=1000, description="characters of a tool's answer that the model is shown"
    )
    max_turn_tool_output: int = Field(
        400_000, ge=1000, description="characters of all tools' answers in one turn together"
    )
    max_answer_tool_calls: int = Field(
        32, ge=1, le=1000, description="tool calls of one answer that are run; the rest is refused"
    )
    max_turn_tool_calls: int = Field(
        200, ge=1, le=10_000, description="tool calls that are run in one turn"
    )


class ToolsSettings(Settings):
    """What tools may do unasked."""

    when_tainted: tuple[str, ...] = Field(
        (
            "memory_search",
            "memory_read",
            "memory_get",
            "memory_tree",
            "graph_recall",
            "schedule_list",
        ),
        description=(
            "tools that only read and that a turn may still call, unasked, when its prompt "
            "holds text from outside"
        ),
    )
