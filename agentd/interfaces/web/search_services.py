"""Services that search the web: one of the owner's own, or one that he has a key for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from agentd.interfaces.web.fetcher import Fetched, Fetcher
from agentd.interfaces.web.web_faults import WebFault

_TITLE, _WORDS = 200, 500  # characters

FindToken = Callable[[], str]
"""The key of a service, looked up each time; "" where it needs none. Raises WebFault where there is none."""


@dataclass(frozen=True, slots=True)
class WebHit:
    """One result."""

    url: str
    title: str
    words: str = ""
    date: str = ""


class SearchService(Protocol):
    """Who searches."""

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """The best results, at most so many. Raises WebFault."""

    async def probe(self) -> None:
        """Return if somebody answers there. Raises WebFault."""


class Searxng:
    """A SearXNG at `address`, by its JSON form, which its owner has to switch on."""

    def __init__(self, address: str, fetcher: Fetcher, token: FindToken) -> None:
        self._address = address
        self._fetcher = fetcher
        self._token = token

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """The best results, at most so many. Raises WebFault."""
        asked = urlencode({"q": query, "format": "json"})
        token = self._token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = await self._fetcher.get(f"{self._address}/search?{asked}", headers)
        if answer.status == 403:
            cure = "let formats under search: in its settings.yml name json"
            raise WebFault("refused", "SearXNG gives no JSON (403)", cure=cure)
        rows = _rows(answer, "results")
        return [_found(row, "content", "publishedDate") for row in rows if row.get("url")][:limit]

    async def probe(self) -> None:
        """Return if somebody answers there. Raises WebFault."""
        await self._fetcher.get(f"{self._address}/")


class Brave:
    """Brave's search service at `address`."""

    def __init__(self, address: str, fetcher: Fetcher, token: FindToken) -> None:
        self._address = address
        self._fetcher = fetcher
        self._token = token

    async def search(self, query: str, limit: int) -> Sequence[WebHit]:
        """The best results, at most so many. Raises WebFault."""
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
        return [_found(row, "description", "age") for row in rows if row.get("url")][:limit]

    async def probe(self) -> None:
        """Return if somebody answers there. Raises WebFault."""
        await self._fetcher.get(f"{self._address}/")


def _rows(answer: Fetched, *path: str) -> Iterator[Mapping[str, Any]]:
    """The results in an answer; none where it has no such list. Raises WebFault for what is no answer."""
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


def _found(row: Mapping[str, Any], words: str, date: str) -> WebHit:
    return WebHit(
        _line(row.get("url"), 2048),
        _line(row.get("title"), _TITLE),
        _line(row.get(words), _WORDS),
        _line(row.get(date), 40),
    )


def _line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""
