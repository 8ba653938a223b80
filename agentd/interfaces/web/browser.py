"""The daemon's access to the web. The libraries for it are imported at the first use."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from agentd.core.health import Problem
from agentd.core.redaction import Redactor
from agentd.interfaces.web.web_faults import WebFault
from agentd.interfaces.web.web_settings import TOOLS, WebSettings

_CURE = "`make run EXTRAS=web` in the checkout, or `pip install 'agentd-daemon[web]'`"


class LoadedWeb(Protocol):
    """Port: the web with its libraries loaded."""

    async def read(self, url: str) -> str:
        """Return a page as text, with its address and title. Raises WebFault."""

    async def search(self, query: str, limit: int) -> str:
        """Return at most `limit` results as text. Raises WebFault."""

    async def probe(self) -> None:
        """Return if the search service answers. Raises WebFault."""


class Browser:
    """Reads pages and searches; reports the fault of the last search until a search succeeds."""

    def __init__(
        self,
        settings: WebSettings,
        opened: Callable[[], LoadedWeb],
        find: Callable[[str], object | None] = importlib.util.find_spec,
    ) -> None:
        """`opened` imports the libraries and returns the web; `find` looks for an installed package
        without importing it.
        """
        self._settings = settings
        self._opened = opened
        self._web: LoadedWeb | None = None
        self._failed: WebFault | None = None
        self._is_missing = settings.enabled and find("trafilatura") is None

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the tools that the model may have: none unless the web is on and its extra
        installed.
        """
        if not self._settings.enabled or self._is_missing:
            return ()
        has_service = bool(self._settings.search.service)
        there = TOOLS if has_service else TOOLS[:1]
        return tuple(name for name in there if self._settings.permission_of(name) != "deny")

    async def read(self, url: str) -> str:
        """Return a page as text, with its address and title. Raises WebFault."""
        return await (await self._loaded()).read(url)

    async def search(self, query: str, limit: int) -> str:
        """Return at most `limit` results as text. Raises WebFault."""
        try:
            found = await (await self._loaded()).search(query, limit)
        except WebFault as fault:
            self._failed = fault
            raise
        self._failed = None
        return found

    async def probe(self) -> None:
        """Return if the search service answers or none is configured. Raises WebFault."""
        if self._settings.search.service and self.offered:
            await (await self._loaded()).probe()

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong: the extra is missing, or the last search failed."""
        if self._is_missing:
            text = "[web] needs the extra `web`, which is not installed: no page can be read"
            return (Problem("web_missing", text, _CURE),)
        if self._failed is None:
            return ()
        text = f"the last search of the web failed: {self._failed.message}"
        cure = self._failed.cure or "`agentd doctor` asks whether [web.search] url answers now"
        return (Problem(f"web_{self._failed.kind}", text, cure),)

    def as_json(self) -> Mapping[str, Any]:
        """Return the web's entry in `agentd status`."""
        settings = self._settings
        return {
            "enabled": settings.enabled,
            "tools": {name: settings.permission_of(name) for name in self.offered},
            "silent": [name for name in self.offered if name in settings.silent],
            "service": settings.search.service if settings.enabled else "",
            "reason": "missing" if self._is_missing else self._failed.kind if self._failed else "",
        }

    async def _loaded(self) -> LoadedWeb:
        if self._web is None:
            self._web = await asyncio.to_thread(self._opened)  # a tenth of a second
        return self._web


def opening(
    settings: WebSettings, environ: Mapping[str, str], folder: Path, redactor: Redactor
) -> Callable[[], LoadedWeb]:
    """Return the function that imports the libraries and opens the web as configured."""
    return partial(_load, settings, environ, folder, redactor)


def _load(
    settings: WebSettings, environ: Mapping[str, str], folder: Path, redactor: Redactor
) -> LoadedWeb:
    from agentd.interfaces.web.reading import open_web

    return open_web(settings, environ, folder, redactor)
