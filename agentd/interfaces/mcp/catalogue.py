"""What servers say of their tools: bounded, pinned by a digest of the very words, and kept in files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import structlog

from agentd.core.message import JsonObject
from agentd.core.paths import ensure_private_dir, write_private
from agentd.interfaces.mcp.schema import bound_schema
from agentd.interfaces.tools.fence import printable

log = structlog.get_logger()

MOST_TOOLS = 200
LONGEST_INSTRUCTIONS = 1000  # characters

_LONGEST = 2000  # characters of a description
# Bytes of a file. All that `ToolListing` takes fits in: one that is written and not read again would have
# what the server says next count as known.
_LARGEST = 32 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,100}", re.ASCII)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool. `pin` is the digest of all that the server said of it, before anything was cut."""

    name: str
    description: str
    schema: JsonObject
    pin: str
    reads: bool = False  # the server says that it changes nothing

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self | None:
        """The tool as a server lists it; None for one that cannot be called by a name."""
        name, words = said.get("name"), said.get("description") or ""
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(words, str):
            return None
        schema, hints = said.get("inputSchema"), said.get("annotations") or {}
        reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
        pin = _digest([name, words, schema, reads])
        return cls(name, printable(words)[:_LONGEST], bound_schema(schema), pin, reads)

    @classmethod
    def kept(cls, told: Mapping[str, Any]) -> Self:
        """One that was kept, by whatever version. Raises TypeError for what is none."""
        made = cls(**told)
        return replace(made, schema=bound_schema(made.schema))

    @property
    def line(self) -> str:
        """Its description in one line."""
        return " ".join(self.description.split())


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A tool as it is and as the owner knows it. `known` is what it was when the server was first seen,
    or when he said yes to a change; None for a tool that came later.
    """

    now: Definition
    known: Definition | None

    @property
    def is_changed(self) -> bool:
        """Whether it is another than the owner knows."""
        return self.known is None or self.known.pin != self.now.pin

    @property
    def told(self) -> Definition:
        """What models are told: what the owner knows, whatever the server says by now."""
        return self.known or self.now


@dataclass(frozen=True, slots=True)
class ToolListing:
    """All that a server has said of itself. `source` is a digest of what was configured for it."""

    source: str = ""
    instructions: str = ""
    entries: Mapping[str, CatalogueEntry] = field(default_factory=dict)
    skipped: int = 0  # tools without a usable name, or beyond the most that are taken

    def renewed(self, source: str, instructions: str, said: list[Mapping[str, Any]]) -> ToolListing:
        """What a server says now. What it said first is known, be that no tool; of another server nothing is."""
        is_first = source != self.source
        old = {} if is_first else self.entries
        found = {one.name: one for one in map(Definition.of, said) if one is not None}
        taken = dict(list(found.items())[:MOST_TOOLS])
        entries = {
            name: CatalogueEntry(now, now if is_first else old[name].known if name in old else None)
            for name, now in taken.items()
        }
        words = printable(instructions).strip()[:LONGEST_INSTRUCTIONS]
        return ToolListing(source, words, entries, len(said) - len(taken))

    def accepted(self, name: str) -> ToolListing:
        """With the tool as it is now known to the owner."""
        now = self.entries[name].now
        return replace(self, entries={**self.entries, name: CatalogueEntry(now, now)})

    def as_json(self) -> dict[str, Any]:
        """The form in which it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Any) -> ToolListing:
        """The kept one. Raises KeyError, TypeError for what is none."""
        entries = {
            str(name): CatalogueEntry(
                Definition.kept(one["now"]), Definition.kept(one["known"]) if one["known"] else None
            )
            for name, one in kept["entries"].items()
        }
        return cls(kept["source"], kept["instructions"], entries, int(kept["skipped"]))


# What stands beside the tools of a server that has resources.
RESOURCE_TOOL: Mapping[str, Any] = {
    "name": "read_resource",
    "description": "Read a resource of this server; `@NAME:URI` in the user's words means that URI.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string"}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True},
}
RESOURCE = Definition.of(RESOURCE_TOOL)


class Catalogue:
    """The listing of one server, and its file. Losing the file costs one start of the server, and what
    it says then counts as known.
    """

    def __init__(self, folder: Path | None, name: str, source: str) -> None:
        """`source` is a digest of what is configured for it; what another server said is forgotten. Without
        a folder it is kept in memory alone.
        """
        self._file = folder / f"{name}.json" if folder else None
        self.source = source
        self.listing = self._load_listing()

    @property
    def is_known(self) -> bool:
        """Whether the server has ever said what it has."""
        return self.listing.source == self.source

    def keep(self, listing: ToolListing) -> None:
        """Take it into use, and keep it if that is possible."""
        if listing == self.listing:
            return
        self.listing = listing
        if self._file is None:
            return
        try:
            ensure_private_dir(self._file.parent)
            write_private(self._file, json.dumps(listing.as_json()))
        except OSError as error:
            log.warning("mcp_catalogue_not_kept", file=str(self._file), error=error.strerror)

    def _load_listing(self) -> ToolListing:
        if self._file is None:
            return ToolListing()
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            if self._file.stat().st_size <= _LARGEST:
                kept = ToolListing.from_json(json.loads(self._file.read_text(encoding="utf-8")))
                if kept.source == self.source:
                    return kept
        return ToolListing()
