"""Who is told: what `[heartbeat] target` means."""

from __future__ import annotations

from collections.abc import Sequence

from agentd.domain.alert import Recipients
from agentd.domain.turn import Origin
from agentd.errors import ConfigError


class Targets:
    """Where alerts go: those of beats as `[heartbeat] target` says, others to every sink."""

    def __init__(self, enabled: Sequence[str], target: str, to: str) -> None:
        """Raises ConfigError for a sink that does not exist or is off."""
        self._enabled = tuple(enabled)
        self._of_beats = resolve(target, to, enabled)

    def __call__(self, origin: Origin) -> Recipients:
        """Whom alerts of that origin go to."""
        return self._of_beats if origin is Origin.HEARTBEAT else Recipients(self._enabled)

    def check(self, target: str, to: str) -> None:
        """Raise ConfigError if beats could not go there."""
        resolve(target, to, self._enabled)

    def adopt(self, target: str, to: str) -> None:
        """Let alerts of beats go there from now on. Raises ConfigError."""
        self._of_beats = resolve(target, to, self._enabled)


def resolve(target: str, to: str, enabled: Sequence[str]) -> Recipients:
    """Whom alerts go to: "last" is every sink that is on, "none" is none.

    Raises ConfigError for a sink that does not exist or is off.
    """
    if target == "last":
        return Recipients(tuple(enabled), to)
    if target == "none":
        return Recipients((), to)
    if target not in enabled:
        known = ", ".join(["last", "none", *enabled])
        raise ConfigError(
            f"[heartbeat] target = {target!r} names no way of alerting that is on",
            cure=f"use one of {known}, or turn {target!r} on in [alerts]",
        )
    return Recipients((target,), to)
