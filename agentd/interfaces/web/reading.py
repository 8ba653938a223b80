"""Reads pages and searches the web, as text for the model, by the configured services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from msgspec import Struct

from agentd.core.errors import ConfigError
from agentd.core.redaction import Redactor
from agentd.core.secrets import Reference, find_key
from agentd.interfaces.web.fetcher import Fetched, Fetcher, FetchLimits
from agentd.interfaces.web.guard import AddressGuard
from agentd.interfaces.web.page import PageReader, WebPage
from agentd.interfaces.web.web_faults import WebFault
from agentd.interfaces.web.web_settings import WebSearchSettings, WebSettings

_ANYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_SEARCH_BYTES = 2_000_000
_TITLE, _WORDS = 200, 500  # characters

FindToken = Callable[[], str]
"""Looks up the key of a service; returns "" if it needs none. Raises WebFault if it is missing."""


class Web:
    """Reads pages and searches with the configured service."""

    def __init__(
        self, fetcher: Fetcher, pages: PageReader, service: SearchService | None, seconds: float
    ) -> None:
        """`seconds` limit the reading of a page as a whole, from its name to its text."""
        self._fetcher = fetcher
        self._pages = pages
        self._service = service
        self._seconds = seconds

    async def read(self, url: str) -> str:
        """Return a page as text, with its address and title. Raises WebFault."""
        try:
            async with asyncio.timeout(self._seconds):
                page = await self._page(url)
        except TimeoutError:
            raise WebFault("timeout", f"it took longer than {self._seconds:g} s") from None
        note = f"[{page.note}]" if page.note else ""
        head = "\n".join(filter(None, (page.url, page.title)))
        return "\n\n".join(filter(None, (head, page.text.strip(), note)))

    async def search(self, query: str, limit: int) -> str:
        """Return at most `limit` results as text. Raises WebFault."""
        assert self._service is not None
        found = await self._service.search(query, limit)
        return "\n\n".join(map(_as_text, found)) or "[Nothing was found.]"

    async def probe(self) -> None:
        """Return if the search service answers or none is configured. Raises WebFault."""
        if self._service is not None:
            await self._service.probe()

    async def _page(self, url: str) -> WebPage:
        fetched = await self._fetcher.get(url)
        if fetched.status >= 400:
            raise WebFault("status", f"it answers with {fetched.status}")
        return await self._pages.page(fetched)


def open_web(
    settings: WebSettings, environ: Mapping[str, str], folder: Path, redactor: Redactor
) -> Web:
    """Return the web as configured, without any request. Keys are looked up at each search and
    added to `redactor`.
    """
    guard = AddressGuard(
        private=tuple(map(ip_network, settings.private)),
        ports=settings.ports,
        allowed=settings.allowed_hosts,
        denied=settings.denied_hosts,
    )
    seconds = settings.timeout.total_seconds()
    limits = FetchLimits(seconds, settings.max_bytes, settings.max_redirects)
    pages = PageReader(environ, folder, seconds)
    return Web(Fetcher(guard, limits), pages, _service(settings.search, environ, redactor), seconds)


def _service(
    settings: WebSearchSettings, environ: Mapping[str, str], redactor: Redactor
) -> SearchService | None:
    token = _finder(settings.key, environ, redactor)
    # The owner has named the service's address, so it may be on a private network.
    limits = FetchLimits(settings.timeout.total_seconds(), _SEARCH_BYTES, redirects=0)
    fetcher = Fetcher(AddressGuard(private=_ANYWHERE), limits)
    match settings.service:
        case "searxng":
            return Searxng(settings.address, fetcher, token)
        case "brave":
            return Brave(settings.address, fetcher, token)
        case "":
            return None


def _finder(place: str, environ: Mapping[str, str], redactor: Redactor) -> Callable[[], str]:
    def found() -> str:
        if not place:
            return ""
        try:
            key = find_key(Reference(place, "[web.search]"), environ)
        except ConfigError as error:
            raise WebFault("no_secret", error.message, cure=error.cure) from None
        if key is None:
            text = f"there is no {place}, which key of [web.search] names"
            raise WebFault("no_secret", text, cure="set it where the daemon runs")
        redactor.add(key.reveal())
        return key.reveal()

    return found


def _as_text(found: WebHit) -> str:
    about = " · ".join(filter(None, (found.title, found.date)))
    return "\n".join(filter(None, (about, found.url, found.words)))


class WebHit(Struct, frozen=True):
    """A search result."""

    url: str
    title: str
    words: str = ""
    date: str = ""


class SearchService(Protocol):
    """Port: a search service."""

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """Return the best results, at most `limit`. Raises WebFault."""

    async def probe(self) -> None:
        """Return if the service answers. Raises WebFault."""


class Searxng:
    """A SearXNG instance at `address`, by its JSON format, which the instance has to enable."""

    def __init__(self, address: str, fetcher: Fetcher, token: FindToken) -> None:
        self._address = address
        self._fetcher = fetcher
        self._token = token

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """Return the best results, at most `limit`. Raises WebFault."""
        asked = urlencode({"q": query, "format": "json"})
        token = self._token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = await self._fetcher.get(f"{self._address}/search?{asked}", headers)
        if answer.status == 403:
            cure = "let formats under search: in its settings.yml name json"
            raise WebFault("refused", "SearXNG gives no JSON (403)", cure=cure)
        rows = _rows(answer, "results")
        return [_hit_of(row, "content", "publishedDate") for row in rows if row.get("url")][:limit]

    async def probe(self) -> None:
        """Return if the instance answers. Raises WebFault."""
        await self._fetcher.get(f"{self._address}/")


class Brave:
    """Brave's search API at `address`."""

    def __init__(self, address: str, fetcher: Fetcher, token: FindToken) -> None:
        self._address = address
        self._fetcher = fetcher
        self._token = token

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """Return the best results, at most `limit`. Raises WebFault."""
        asked = urlencode({"q": query, "count": limit})
        answer = await self._fetcher.get(
            f"{self._address}/res/v1/web/search?{asked}",
            {"Accept": "application/json", "X-Subscription-Token": self._token()},
        )
        if answer.status in (401, 403, 422):
            raise WebFault(
                "refused",
                f"Brave refuses the key or the question ({answer.status})",
                cure="see to the key that [web.search] names",
            )
        rows = _rows(answer, "web", "results")
        return [_hit_of(row, "description", "age") for row in rows if row.get("url")][:limit]

    async def probe(self) -> None:
        """Return if the API answers. Raises WebFault."""
        await self._fetcher.get(f"{self._address}/")


def _rows(answer: Fetched, *path: str) -> Iterator[Mapping[str, Any]]:
    """Return the JSON objects of the result list at `path` in an answer; none if there is no such
    list. Raises WebFault for a failure or another format.
    """
    if answer.status == 429:
        raise WebFault("busy", "the search service has been asked too often", cure="Wait.")
    if answer.status != 200:
        raise WebFault("refused", f"the search service answers with {answer.status}")
    if answer.is_cut:
        raise WebFault("protocol", "the search service answers with more than is read")
    try:
        found: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise WebFault(
            "protocol", "the search service answers with something else than JSON"
        ) from None
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return (row for row in (found if isinstance(found, list) else ()) if isinstance(row, Mapping))


def _hit_of(row: Mapping[str, Any], words: str, date: str) -> WebHit:
    return WebHit(
        _line(row.get("url"), 2048),
        _line(row.get("title"), _TITLE),
        _line(row.get(words), _WORDS),
        _line(row.get(date), 40),
    )


def _line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""
