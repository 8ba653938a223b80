"""What is not as it should be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is degraded, and what cures it."""

    code: str
    text: str
    cure: str = ""

    def as_json(self) -> dict[str, str]:
        """The shape in `agentd status`."""
        return {"code": self.code, "text": self.text, "cure": self.cure}


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check of `agentd doctor` came to."""

    code: str
    level: Level
    text: str
    cure: str = ""

    @classmethod
    def ok(cls, code: str, text: str) -> Self:
        """All is well."""
        return cls(code, Level.OK, text)

    @classmethod
    def warn(cls, code: str, text: str, cure: str) -> Self:
        """It works, but not as well as it should."""
        return cls(code, Level.WARN, text, cure)

    @classmethod
    def fail(cls, code: str, text: str, cure: str) -> Self:
        """Something does not work."""
        return cls(code, Level.FAIL, text, cure)

    def as_json(self) -> dict[str, str]:
        """The shape in `agentd doctor`."""
        return {"code": self.code, "level": self.level, "text": self.text, "cure": self.cure}
