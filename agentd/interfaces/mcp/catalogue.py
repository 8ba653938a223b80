"""What servers said of themselves, kept in files: a daemon knows their tools without starting them."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import structlog

from agentd.core.paths import ensure_private_dir
from agentd.interfaces.mcp.definition import ToolListing

log = structlog.get_logger()

_LARGEST = 8 * 1024 * 1024


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
            folder = ensure_private_dir(self._file.parent)
            descriptor, name = tempfile.mkstemp(dir=folder, prefix=".new-")  # 0600
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(listing.as_json(), file)
            Path(name).replace(self._file)
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
