"""Values of health: problems for `agentd status`, findings of `agentd doctor`."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from msgspec import Struct


class Problem(Struct, frozen=True):
    """Something that is degraded, and how to cure it."""

    code: str
    text: str
    cure: str = ""

    def as_json(self) -> dict[str, str]:
        """Return an entry of `problems` in `agentd status`."""
        return {"code": self.code, "text": self.text, "cure": self.cure}


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(Struct, frozen=True):
    """The result of one check of `agentd doctor`."""

    code: str
    level: Level
    text: str
    cure: str = ""

    @classmethod
    def ok(cls, code: str, text: str) -> Self:
        """Return a finding that all is well."""
        return cls(code, Level.OK, text)

    @classmethod
    def warn(cls, code: str, text: str, cure: str) -> Self:
        """Return a finding that something works, but not as well as it should."""
        return cls(code, Level.WARN, text, cure)

    @classmethod
    def fail(cls, code: str, text: str, cure: str) -> Self:
        """Return a finding that something does not work."""
        return cls(code, Level.FAIL, text, cure)

    def as_json(self) -> dict[str, str]:
        """Return an entry of `agentd doctor`."""
        return {"code": self.code, "level": self.level, "text": self.text, "cure": self.cure}
