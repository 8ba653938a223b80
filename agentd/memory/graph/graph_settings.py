"""Settings of the concept graph: `[graph]`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from agentd.core.settings import ActsOutside, FilePath, Settings

_SPACE = re.compile(r"[a-z0-9-]{1,40}")


class GraphSettings(Settings):
    """What facts are about, and how it hangs together."""

    enabled: bool = Field(
        True,
        description="keep the concept graph; false: it is neither fed nor asked, its files stay",
    )
    spaces: tuple[str, ...] = Field(
        (),
        description=(
            'what facts may be shared with other agents under, such as ["team"]; none: nothing is'
        ),
    )
    chain: bool = Field(
        False, description="log what happens to the graph in a chain that nobody can change unseen"
    )

    key_file: Annotated[FilePath, ActsOutside("is read as a key")] = Field(
        "",
        description=(
            "file of mode 0600 with the key of Sign and Verify in `.0` programs; empty: none"
        ),
    )

    @field_validator("spaces")
    @classmethod
    def _spaces_are_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for space in value:
            if not _SPACE.fullmatch(space):
                raise ValueError(f"{space!r} is no space: use up to 40 of a-z, 0-9 and -")
        return value
