"""What servers said of themselves, kept in files: a daemon knows their tools without starting them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import structlog

from agentd.core.paths import ensure_private_dir, write_private
from agentd.interfaces.mcp.definition import ToolListing

log = structlog.get_logger()

# Bytes of a file. All that `ToolListing` takes fits in: one that is written and not read again would have
# what the server says next count as known.
_LARGEST = 32 * 1024 * 1024


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
        self.listing = self._kept()

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

    def _kept(self) -> ToolListing:
        if self._file is None:
            return ToolListing()
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            if self._file.stat().st_size <= _LARGEST:
                kept = ToolListing.from_json(json.loads(self._file.read_text(encoding="utf-8")))
                if kept.source == self.source:
                    return kept
        return ToolListing()
