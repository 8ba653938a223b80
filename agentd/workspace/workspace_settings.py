"""The table `[workspace]`: which files a turn's prompt carries, and where they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from agentd.core.errors import PathRefused
from agentd.core.settings import ActsOutside, NamedPaths, Settings, parse_named_paths, parse_path
from agentd.core.workspace import FACTS_PATH
from agentd.workspace.names import fold, parse

_FOLDER = re.compile(r"[^/.~@\\\x00-\x1f][^/\\\x00-\x1f]*(/[^/.\\\x00-\x1f][^/\\\x00-\x1f]*)*")

# The files in prompts, in the order of each style; those of the setting `order` come before them.
# "filename": what changes least comes first. "semantic": agentd's instructions and values come
# before the user and the tools.
USUAL_ORDER: Mapping[str, tuple[str, ...]] = {
    "filename": (
        "SOUL.md",
        "AGENTS.md",
        "TOOLS.md",
        "IDENTITY.md",
        "USER.md",
        "MEMORY.md",
        "HEARTBEAT.md",
    ),
    "semantic": (
        "AGENTS.md",
        "SOUL.md",
        "USER.md",
        "IDENTITY.md",
        "TOOLS.md",
        "MEMORY.md",
        "HEARTBEAT.md",
    ),
}
INJECTED = USUAL_ORDER["filename"]

_SHARED = ("shared/",)


def _shows_more(folders: Sequence[str]) -> bool:
    return not set(folders) <= set(_SHARED)


class WorkspaceSettings(Settings):
    """What is injected, what caps it, and what else may be read."""

    path: Annotated[str, ActsOutside("is where notes are read and written")] = Field(
        "", description='where the workspace is, like "~/notes"; empty is the default place'
    )
    enabled: bool = Field(True, description="whether workspace files go into the prompt at all")
    inject_soul: bool = Field(True, description="SOUL.md in the prompt")
    inject_agents: bool = Field(True, description="AGENTS.md in the prompt")
    inject_tools: bool = Field(True, description="TOOLS.md in the prompt")
    inject_identity: bool = Field(True, description="IDENTITY.md in the prompt")
    inject_user: bool = Field(True, description="USER.md in the owner's prompts")
    inject_memory: bool = Field(True, description="MEMORY.md in the owner's prompts")
    inject_heartbeat: bool = Field(True, description="HEARTBEAT.md in the owner's prompts")
    inject_daily: bool = Field(True, description="recent daily notes in the owner's prompts")
    style: Literal["filename", "semantic"] = Field(
        "filename", description='headings of injected files: "filename" or "semantic"'
    )
    order: tuple[str, ...] = Field(
        (),
        description=(
            "files that come first in the prompt, in this order; the others follow in the usual one"
        ),
    )
    daily_dir: str = Field("memory", description="the folder of the daily notes")
    daily_aliases: tuple[str, ...] = Field(
        ("daily",), description="other folders in which daily notes are found"
    )
    daily_lookback_days: int = Field(
        1, ge=0, le=31, description="how many days before today are injected too"
    )
    archive_after_days: int = Field(
        0,
        ge=0,
        description="daily notes older than that move to archive/YEAR beside the others; 0: never",
    )
    max_file_chars: int = Field(
        20_000, ge=200, description="characters of one file that are injected at most"
    )
    max_total_chars: int = Field(
        60_000, ge=1_000, description="characters of all files that are injected at most"
    )
    group_paths: Annotated[
        tuple[str, ...], ActsOutside("is what others see of the workspace", when=_shows_more)
    ] = Field(
        _SHARED,
        description=(
            "folders that groups and isolated sessions may see; nothing else exists for them"
        ),
    )
    read_scopes: NamedPaths = Field(
        (), description='other workspaces to read from, each "NAME=PATH"; spelled @NAME/file'
    )

    @field_validator("path")
    @classmethod
    def _place_is_one(cls, value: str) -> str:
        """Refuse a relative path, which would depend on the folder in which the daemon is
        started.
        """
        if value and not parse_path(value).is_absolute():
            msg = f'{value!r} is no whole path; write it like "/home/me/notes" or "~/notes"'
            raise ValueError(msg)
        return value

    @field_validator("order")
    @classmethod
    def _files_are_injected(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in INJECTED or value.count(name) > 1:
                msg = (
                    f"{name!r} is no file that is injected, or stands there twice; these are: "
                    f"{', '.join(INJECTED)}"
                )
                raise ValueError(msg)
        return value

    @field_validator("daily_dir", "daily_aliases")
    @classmethod
    def _folders_are_inside(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for folder in (value,) if isinstance(value, str) else value:
            if not _FOLDER.fullmatch(folder):
                msg = f'{folder!r} is no folder of the workspace; write it like "memory"'
                raise ValueError(msg)
        return value

    @field_validator("group_paths")
    @classmethod
    def _shared_folders_are_inside(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for folder in value:
            try:
                name = parse(folder)
            except PathRefused as error:
                raise ValueError(error.message) from None
            if name.scope or not name.parts:
                msg = f'{folder!r} is no folder of the workspace; write it like "shared/"'
                raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _days_are_not_shared(self) -> Self:
        """Refuse shared folders that contain daily notes or facts: these are for the owner only."""
        facts = FACTS_PATH.partition("/")[0]
        private = [_folded_parts(f) for f in (self.daily_dir, *self.daily_aliases, facts)]
        for folder in self.group_paths:
            shared = _folded_parts(folder)
            if any(shared[: len(p)] == p[: len(shared)] for p in private):
                msg = (
                    f"group_paths: {folder!r} is where your daily notes or facts are; share another"
                )
                raise ValueError(msg)
        return self

    def scopes(self) -> Mapping[str, Path]:
        """Return the paths of the other workspaces, by name."""
        return parse_named_paths(self.read_scopes)


def _folded_parts(folder: str) -> list[str]:
    return [fold(part) for part in parse(folder).parts]
