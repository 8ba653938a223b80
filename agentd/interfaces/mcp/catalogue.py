"""Tool listings of MCP servers: bounded, pinned by a digest of the original words, stored
in files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import structlog
from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agentd.core.message import JsonObject
from agentd.core.paths import ensure_private_dir, read_regular, write_private
from agentd.interfaces.mcp.schema import bound_schema
from agentd.interfaces.tools.fence import printable

log = structlog.get_logger()

MOST_TOOLS = 200
LONGEST_INSTRUCTIONS = 1000  # characters

_LONGEST = 2000  # characters of a description
# Bytes of a file. The largest ToolListing fits in: if a file were written that is too large to be
# read again, the server's next listing would count as known.
_LARGEST = 32 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,100}", re.ASCII)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class Definition(Struct, frozen=True):
    """A tool's definition. `description` and `schema` are bounded; `pin` is the digest of all that
    the server sent of the tool, before anything was cut.
    """

    name: str
    description: str
    schema: JsonObject
    pin: str
    reads: bool = False  # the server says that the tool is read-only

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self | None:
        """Parse an element of a server's tool list; None if the name or the description is
        unusable.
        """
        name, words = said.get("name"), said.get("description") or ""
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(words, str):
            return None
        schema, hints = said.get("inputSchema"), said.get("annotations") or {}
        reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
        pin = _digest([name, words, schema, reads])
        return cls(name, printable(words)[:_LONGEST], bound_schema(schema), pin, reads)

    @classmethod
    def kept(cls, told: Mapping[str, Any]) -> Self:
        """Parse a stored definition, also one of another version. Raises TypeError if its fields
        differ.
        """
        made = cls(**told)
        return replace(made, schema=bound_schema(made.schema))

    @property
    def line(self) -> str:
        """The description in one line."""
        return " ".join(self.description.split())


class CatalogueEntry(Struct, frozen=True):
    """A tool's current definition and the one that the owner knows. `known` is from the first
    listing of the server or from the last change that the owner accepted; None for a tool that was
    added later.
    """

    now: Definition
    known: Definition | None

    @property
    def is_changed(self) -> bool:
        """Whether the current definition is not the one that the owner knows."""
        return self.known is None or self.known.pin != self.now.pin

    @property
    def told(self) -> Definition:
        """The definition that models get: the known one, even if the server has changed it
        since.
        """
        return self.known or self.now


class ToolListing(Struct, frozen=True):
    """All that a server has said of itself. `source` is the digest of the server's configuration
    (see `source` in reaching).
    """

    source: str = ""
    instructions: str = ""
    entries: Mapping[str, CatalogueEntry] = field(default_factory=dict)
    skipped: int = 0  # tools that are left out: without a usable name, twice, or beyond MOST_TOOLS
    malformed: tuple[str, ...] = ()  # tools that the protocol does not allow, each with the reason

    def renewed(
        self,
        source: str,
        instructions: str,
        said: list[Mapping[str, Any]],
        malformed: Sequence[str] = (),
    ) -> ToolListing:
        """Return the listing with what the server says now. All tools of the first listing of a
        source count as known, tools that come later do not; with another `source` a listing is the
        first one.
        """
        is_first = source != self.source
        old = {} if is_first else self.entries
        found = {one.name: one for one in map(Definition.of, said) if one is not None}
        taken = dict(list(found.items())[:MOST_TOOLS])
        entries = {
            name: CatalogueEntry(now, now if is_first else old[name].known if name in old else None)
            for name, now in taken.items()
        }
        words = printable(instructions).strip()[:LONGEST_INSTRUCTIONS]
        bad = tuple(printable(one) for one in malformed[:MOST_TOOLS])
        return ToolListing(source, words, entries, len(said) - len(taken), bad)

    def accepted(self, name: str) -> ToolListing:
        """Return the listing with the tool's current definition as the known one."""
        now = self.entries[name].now
        return replace(self, entries={**self.entries, name: CatalogueEntry(now, now)})

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form for the file."""
        shape: dict[str, Any] = to_builtins(self)
        return shape

    @classmethod
    def from_json(cls, kept: Any) -> ToolListing:
        """Parse the JSON form. Raises KeyError, TypeError or ValueError if it is none."""
        entries = {
            str(name): CatalogueEntry(
                Definition.kept(one["now"]), Definition.kept(one["known"]) if one["known"] else None
            )
            for name, one in kept["entries"].items()
        }
        malformed = tuple(map(str, kept.get("malformed", ())))
        return cls(kept["source"], kept["instructions"], entries, int(kept["skipped"]), malformed)


# The tool that agentd adds to the tools of a server that has resources.
RESOURCE_TOOL: Mapping[str, Any] = {
    "name": "read_resource",
    "description": (
        "Read a resource of this server; `@NAME:URI` in the user's words means that URI."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string"}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True},
}
RESOURCE = Definition.of(RESOURCE_TOOL)


class Catalogue:
    """The listing of one server, and its file. If the file is lost, the next start of the server
    makes a new listing, all of which counts as known.
    """

    def __init__(self, folder: Path | None, name: str, source: str) -> None:
        """`source` is the digest of the server's configuration; a stored listing of another source
        is discarded. Without `folder` the listing is kept in memory only.
        """
        self._file = folder / f"{name}.json" if folder else None
        self.source = source
        self.listing = self._load_listing()

    @property
    def is_known(self) -> bool:
        """Whether the server, as it is configured now, has ever listed its tools."""
        return self.listing.source == self.source

    def keep(self, listing: ToolListing) -> None:
        """Use the listing from now on and store it; a file that cannot be written is only
        logged.
        """
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
                kept = ToolListing.from_json(json.loads(read_regular(self._file)))
                if kept.source == self.source:
                    return kept
        return ToolListing()
