"""Who is told: what `[heartbeat] target` means."""

from __future__ import annotations

from collections.abc import Sequence

from agentd.errors import ConfigError


def resolve(target: str, to: str, enabled: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The sinks and the recipient to hand to them: "last" is every sink that is on, "none" is none.

    Raises ConfigError for a sink that does not exist or is off.
    """
    if target == "last":
        return tuple(enabled), to
    if target == "none":
        return (), to
    if target not in enabled:
        known = ", ".join(["last", "none", *enabled])
        raise ConfigError(
            f"[heartbeat] target = {target!r} names no way of alerting that is on",
            cure=f"use one of {known}, or turn {target!r} on in [alerts]",
        )
    return (target,), to
