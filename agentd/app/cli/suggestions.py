"""Settings of other agents beside those of agentd that mean the same. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

# Their key, ours. Only what means the same is here; docs/migrating.md tells the rest.
OPENCLAW = (
    ("agents.defaults.model.primary", "provider.model"),
    ("agents.defaults.contextTokens", "provider.context_window"),
    ("agents.defaults.userTimezone", "agent.timezone"),
    ("session.reset.idleMinutes", "agent.idle_reset"),
    ("agents.defaults.maxConcurrent", "agent.max_concurrent_turns"),
    ("agents.defaults.compaction.reserveTokensFloor", "compaction.reserve_tokens"),
    ("agents.defaults.compaction.memoryFlush.enabled", "compaction.memory_flush.enabled"),
    (
        "agents.defaults.compaction.memoryFlush.softThresholdTokens",
        "compaction.memory_flush.soft_threshold_tokens",
    ),
    (
        "agents.defaults.compaction.memoryFlush.systemPrompt",
        "compaction.memory_flush.system_prompt",
    ),
    ("agents.defaults.compaction.memoryFlush.prompt", "compaction.memory_flush.user_prompt"),
    ("agents.defaults.heartbeat.every", "heartbeat.interval"),
    ("agents.defaults.heartbeat.model", "heartbeat.model"),
    ("agents.defaults.heartbeat.prompt", "heartbeat.prompt"),
    ("agents.defaults.heartbeat.ackMaxChars", "heartbeat.ack_max_chars"),
    ("agents.defaults.heartbeat.includeReasoning", "heartbeat.include_reasoning"),
    ("agents.defaults.heartbeat.activeHours.start", "heartbeat.active_hours_start"),
    ("agents.defaults.heartbeat.activeHours.end", "heartbeat.active_hours_end"),
    ("agents.defaults.heartbeat.activeHours.timezone", "heartbeat.timezone"),
)
_SAME = (
    "heartbeat.enabled",
    "heartbeat.interval",
    "heartbeat.prompt",
    "heartbeat.active_hours_start",
    "heartbeat.active_hours_end",
    "workspace.inject_soul",
    "workspace.inject_memory",
    "workspace.inject_daily",
    "workspace.inject_agents",
    "workspace.inject_tools",
)
_FLUSH = ("enabled", "soft_threshold_tokens", "system_prompt", "user_prompt")
_INJECTED = ("soul", "memory", "daily", "agents", "tools", "identity", "user", "heartbeat")
RUSTYCLAW = (
    ("model.provider", "provider.kind"),
    ("model.model", "provider.model"),
    ("model.base_url", "provider.base_url"),
    *((f"memory_flush.{key}", f"compaction.memory_flush.{key}") for key in _FLUSH),
    *((f"compaction.memory_flush.{key}", f"compaction.memory_flush.{key}") for key in _FLUSH),
    *((f"workspace_context.inject_{n}", f"workspace.inject_{n}") for n in _INJECTED),
    *((key, key) for key in _SAME),
)
_KINDS = frozenset({"anthropic", "openai"})
# What is not closed goes on to the end: else each beginning would be read to there in vain.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NAME = re.compile(rf"({_STRING})|(?<![\w$])([A-Za-z_$][\w$]*+)(?=\s*+:)", re.DOTALL)


def openclaw(text: str) -> list[dict[str, Any]]:
    """What an openclaw.json says that agentd has a key for: `{theirs, value, ours}`. Raises ValueError
    for a file that cannot be read.
    """
    return _beside(_relaxed(text), OPENCLAW)


def rustyclaw(text: str) -> list[dict[str, Any]]:
    """The same of a RustyClaw config.toml."""
    return _beside(tomllib.loads(text), RUSTYCLAW)


def _beside(settings: Any, keys: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    found = ((theirs, _at(settings, theirs), ours) for theirs, ours in keys)
    return [
        {"theirs": theirs, "ours": ours, "value": _as_ours(ours, value)}
        for theirs, value, ours in found
        if isinstance(value, str | int | float) and _fits(ours, value)
    ]


def _fits(ours: str, value: object) -> bool:
    return ours != "provider.kind" or value in _KINDS


def _as_ours(ours: str, value: Any) -> Any:
    """Their models are written with the service before them, as in `anthropic/NAME`, their minutes as
    numbers.
    """
    if ours == "provider.model" and isinstance(value, str):
        return value.split("/", 1)[-1]
    if ours == "agent.idle_reset":
        return f"{value}m"
    return value


def _at(settings: Any, path: str) -> Any:
    for name in path.split("."):
        settings = settings.get(name) if isinstance(settings, dict) else None
    return settings


def _relaxed(text: str) -> Any:
    """JSON that may have comments, bare names and commas at the end, as OpenClaw reads it."""
    try:
        return json.loads(text)
    except ValueError:
        plain = _COMMENT.sub(lambda m: m[1] or " ", text)
        plain = _NAME.sub(lambda m: m[1] or f'"{m[2]}"', plain)
        return json.loads(_COMMA.sub(lambda m: m[1] or "", plain))
