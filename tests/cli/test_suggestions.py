"""Settings of other agents beside ours."""

from __future__ import annotations

import json
import tomllib

import pytest
import tomli

from agentd.app.cli import other_agents
from agentd.app.config import example


def known(path: str) -> bool:
    settings = tomli.loads(example())
    for name in path.split("."):
        if not isinstance(settings, dict) or name not in settings:
            return False
        settings = settings[name]
    return True


@pytest.mark.parametrize(
    "ours", sorted({o for _, o in (*other_agents.OPENCLAW_KEYS, *other_agents.RUSTYCLAW_KEYS)})
)
def test_every_key_that_is_suggested_exists(ours: str) -> None:
    assert known(ours)


def test_openclaws_relaxed_json_is_read() -> None:
    text = """{
      // a comment with "quotes" and { braces
      agents: { defaults: {
        model: { primary: "anthropic/claude-x" }, /* another: one */
        heartbeat: { every: "45m", activeHours: { start: "07:00", }, },
        compaction: { memoryFlush: { enabled: false, prompt: "a // b, } c: d" } },
      } },
      session: { reset: { mode: "idle", idleMinutes: 90 } },
      gateway: { auth: { token: "secret" } },
    }"""
    found = {row["ours"]: row["value"] for row in other_agents.openclaw_settings(text)}
    assert found == {
        "agent.idle_reset": "90m",
        "provider.model": "claude-x",
        "heartbeat.interval": "45m",
        "heartbeat.active_hours_start": "07:00",
        "compaction.memory_flush.enabled": False,
        "compaction.memory_flush.user_prompt": "a // b, } c: d",
    }


def test_rustyclaws_keys_are_read_in_both_places() -> None:
    text = """
    [model]
    provider = "ollama"
    model = "small"
    [memory_flush]
    enabled = true
    [workspace_context]
    inject_user = false
    [heartbeat]
    interval = "30m"
    """
    found = {row["ours"]: row["value"] for row in other_agents.rustyclaw_settings(text)}
    assert found == {
        "provider.model": "small",
        "compaction.memory_flush.enabled": True,
        "workspace.inject_user": False,
        "heartbeat.interval": "30m",
    }


@pytest.mark.parametrize("text", ["{", "[]]", "{a: }"])
def test_what_is_no_settings_file_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        other_agents.openclaw_settings(text)
    with pytest.raises(tomllib.TOMLDecodeError):
        other_agents.rustyclaw_settings("[")
