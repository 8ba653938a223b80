"""The settings of `[storage]`."""

from __future__ import annotations

from pydantic import Field

from agentd.core.settings import Settings


class StorageSettings(Settings):
    """How long conversations are kept, and how many backups."""

    backups: int = Field(
        7,
        ge=0,
        le=365,
        description=(
            "backups of the state that agentd makes daily and before upgrades, kept in "
            "state/backups; 0: none"
        ),
    )

    retention_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="days after which what has left a context, memories saved, is erased; 0: never",
    )
