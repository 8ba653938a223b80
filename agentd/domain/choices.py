"""What a user may choose for one session."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """When the user is asked before a file changes."""

    AUTO = "auto"  # where the rules ask for it
    ASK = "ask"  # always


@dataclass(frozen=True, slots=True)
class Choices:
    """A session's choices; "" leaves it to the configuration."""

    mode: Mode = Mode.AUTO
    model: str = ""
    effort: str = ""


UNCHOSEN = Choices()


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to choose from: models, the configured one first, and how much one may think."""

    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()

    def kept(self, choices: Choices) -> Choices:
        """The choices without what is no longer offered, since another service may be configured."""
        return Choices(
            choices.mode,
            choices.model if choices.model in self.models else "",
            choices.effort if choices.effort in self.efforts else "",
        )


NOTHING_OFFERED = Offer()
