"""Settings of facts: `[facts]`."""

from __future__ import annotations

from pydantic import Field

from agentd.core.settings import Duration, PositiveDuration, Settings
from agentd.core.times import parse_duration


class FactsSettings(Settings):
    """What is learnt about the user, and how."""

    enabled: bool = Field(
        True, description="learn facts about you; false: nothing is read, kept or recalled"
    )
    idle: Duration = Field(
        parse_duration("5m"),
        description="facts are read out of a conversation when it has rested for so long",
    )
    extraction_model: str = Field(
        "",
        description="model that reads them; empty: the provider's cheap one, else the chat's",
    )
    extraction_timeout: PositiveDuration = Field(
        parse_duration("2m"), description="how long one call of it may take"
    )
    batch_messages: int = Field(40, ge=1, le=400, description="messages that one call reads")
    batch_tokens: int = Field(
        4_000, ge=100, le=100_000, description="about how many tokens of messages one call reads"
    )
    max_facts: int = Field(
        10_000, ge=100, le=100_000, description="beyond it the least important are put aside"
    )
    prompt_tokens: int = Field(
        1_000,
        ge=0,
        le=20_000,
        description=(
            "while all facts fit into so many tokens every turn is told all of them; beyond it, "
            "and with 0, those that a message has to do with"
        ),
    )
    max_results: int = Field(
        10, ge=1, le=50, description="facts that a message is told with at most; none is fine"
    )
    similarity_threshold: float = Field(
        0.35,
        ge=0,
        le=1,
        description="how near a fact that shares no word with it must be in meaning",
    )
