"""What agents tell each other of their graphs, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.concept import EpisodeHash


@dataclass(frozen=True, slots=True)
class KeptEpisode:
    """An episode that no fact says. `said` is its record as `.0c` text, `teller` who says it, "" for a
    promotion; `receipt` names its entry in the chain of the graph, "" where none is kept.
    """

    episode: EpisodeHash
    teller: str
    at: datetime  # when it came in
    said: str
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A fact that is shared in a space, as this episode. `is_sent`: a message said it. Without `fact`
    it is taken back. The salt is a part of what others are told: once it is gone, the name of the
    episode says nothing.
    """

    space: str
    episode: EpisodeHash
    fact: str = ""
    salt: str = ""
    is_sent: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it is taken back."""
        return not self.fact

    def ended(self) -> Share:
        """It, taken back; no message has said so yet."""
        return Share(self.space, self.episode)
