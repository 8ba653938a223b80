"""Settings of the concept graph: `[graph]`."""

from __future__ import annotations

from pydantic import Field

from agentd.domain.settings import Settings


class GraphSettings(Settings):
    """What facts are about, and how it hangs together."""

    enabled: bool = Field(
        True,
        description="keep the concept graph; false: it is neither fed nor asked, its files stay",
    )
