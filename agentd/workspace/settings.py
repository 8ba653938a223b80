"""The table `[workspace]`: which files a turn's prompt carries, and where they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from agentd.domain.settings import Settings

_SCOPE = re.compile(r"([a-z0-9][a-z0-9_-]{0,31})=(.+)", re.ASCII)
_FOLDER = re.compile(r"[^/.~@\\\x00-\x1f][^/\\\x00-\x1f]*(/[^/.\\\x00-\x1f][^/\\\x00-\x1f]*)*")


class WorkspaceSettings(Settings):
    """What is injected, what caps it, and what else may be read."""

    path: str = Field("", description="where the workspace is; empty is the default place")
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
    daily_dir: str = Field("memory", description="the folder of the daily notes")
    daily_aliases: tuple[str, ...] = Field(
        ("daily",), description="other folders in which daily notes are found"
    )
    daily_lookback_days: int = Field(
        1, ge=0, le=31, description="how many days before today are injected too"
    )
    max_file_chars: int = Field(
        20_000, ge=200, description="characters of one file that are injected at most"
    )
    max_total_chars: int = Field(
        60_000, ge=1_000, description="characters of all files that are injected at most"
    )
    read_scopes: tuple[str, ...] = Field(
        (), description='other workspaces to read from, each "NAME=PATH"; spelled @NAME/file'
    )

    @field_validator("daily_dir", "daily_aliases")
    @classmethod
    def _folders_are_inside(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for folder in (value,) if isinstance(value, str) else value:
            if not _FOLDER.fullmatch(folder):
                msg = f'{folder!r} is no folder of the workspace; write it like "memory"'
                raise ValueError(msg)
        return value

    @field_validator("read_scopes")
    @classmethod
    def _scopes_have_names_and_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = []
        for scope in value:
            match = _SCOPE.fullmatch(scope)
            if match is None or not Path(match[2]).expanduser().is_absolute():
                msg = f'{scope!r} is no scope; write it like "work=/home/me/work-notes"'
                raise ValueError(msg)
            names.append(match[1])
        if len(set(names)) < len(names):
            msg = "two scopes have the same name"
            raise ValueError(msg)
        return value

    def scopes(self) -> Mapping[str, Path]:
        """The other workspaces by name."""
        pairs = (scope.partition("=") for scope in self.read_scopes)
        return {name: Path(path).expanduser() for name, _, path in pairs}
