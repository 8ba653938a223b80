"""Whether a part is well."""

from __future__ import annotations

from typing import Protocol

from agentd.domain.health import Problem


class Probe(Protocol):
    """A part's health, for `status` and the watchdog."""

    @property
    def name(self) -> str:
        """The part."""

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now; none is fine."""

    async def prove(self) -> None:
        """Do a little real work; returning is the proof. May hang: the caller has a deadline."""
