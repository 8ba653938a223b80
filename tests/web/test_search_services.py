"""Search services as their documentation says that they answer, and as they break."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from agentd.core.redaction import Redactor
from agentd.interfaces.web.reading import Brave, Searxng, open_web
from agentd.interfaces.web.web_faults import WebFault
from agentd.interfaces.web.web_settings import WebSettings
from tests.web.sites import fetcher, leads_to, page, site

# As in https://docs.searxng.org/dev/search_api.html and the result types of its documentation.
SEARXNG = {
    "query": "boat varnish",
    "number_of_results": 2,
    "results": [
        {
            "url": "https://a.example/varnish",
            "title": "Varnish  for\nboats",
            "content": "Two coats are <b>enough</b>.",
            "publishedDate": "2026-03-01T00:00:00",
            "engine": "duckduckgo",
            "score": 1.5,
            "category": "general",
        },
        {"url": "https://b.example/", "title": "B", "content": None, "publishedDate": None},
        {"title": "without an address"},
        "nonsense",
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [],
}
BRAVE = {
    "type": "search",
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Varnish",
                "url": "https://a.example/varnish",
                "description": "Two coats.",
                "age": "March 1, 2026",
            }
        ],
    },
}


def as_json(value: object, status: str = "200 OK") -> bytes:
    return page(json.dumps(value), "application/json", status)


async def test_searxng_is_asked_for_json_and_its_results_are_told() -> None:
    async with site({"/sx/search": as_json(SEARXNG)}) as here:
        service = Searxng(here.url("/sx"), fetcher(), lambda: "")
        first, second = await service.search("boat & varnish?", 5)
        assert len(await service.search("x", 1)) == 1
    assert first.url == "https://a.example/varnish"
    assert first.title == "Varnish for boats"
    assert first.date == "2026-03-01T00:00:00"
    assert (second.url, second.words) == ("https://b.example/", "")
    asked = parse_qs(urlsplit(here.heads[0].split()[1]).query)
    assert asked == {"q": ["boat & varnish?"], "format": ["json"]}
    assert "authorization" not in here.heads[0].lower()


async def test_brave_is_given_its_key_and_nobody_else_is() -> None:
    pages = {"/res/v1/web/search": as_json(BRAVE), "/on/res/v1/web/search": leads_to("/other")}
    async with site(pages) as here:
        (found,) = await Brave(here.url(""), fetcher(), lambda: "KEY").search("varnish", 3)
        by = fetcher(redirects=0)
        with pytest.raises(WebFault, match="leads on"):
            await Brave(here.url("/on"), by, lambda: "KEY").search("varnish", 3)
    assert (found.url, found.words) == ("https://a.example/varnish", "Two coats.")
    assert "x-subscription-token: key" in here.heads[0].lower()
    assert "count=3" in here.heads[0]
    assert len(here.heads) == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (as_json({}, "403 Forbidden"), "refused"),
        (as_json({}, "500 Broken"), "refused"),
        (as_json({}, "429 Too Many"), "busy"),
        (page("<html>no json</html>"), "protocol"),
        (page("[" * 90_000, "application/json"), "protocol"),
        (page(b"\xff\xfe\x00", "application/json"), "protocol"),
        (as_json({"results": "x" * 200_000}), "protocol"),
    ],
)
async def test_what_goes_wrong_is_told_in_words(answer: bytes, kind: str) -> None:
    async with site({"/search": answer, "/res/v1/web/search": answer}) as here:
        for service in (Searxng, Brave):
            with pytest.raises(WebFault) as refused:
                await service(here.url(""), fetcher(), lambda: "").search("x", 5)
            assert refused.value.kind == kind
    with pytest.raises(WebFault, match="nobody answers"):
        await Searxng(here.url(""), fetcher(), lambda: "").probe()


@pytest.mark.parametrize("answer", [[], {}, {"results": None}, {"results": {"a": 1}}, 3, None])
async def test_an_answer_without_results_is_none_found(answer: object) -> None:
    async with site({"/search": as_json(answer)}) as here:
        assert await Searxng(here.url(""), fetcher(), lambda: "").search("x", 5) == []


def configured(**search: str) -> WebSettings:
    return WebSettings.model_validate({"enabled": True, "search": search})


async def test_a_service_may_be_on_a_private_network_and_its_key_is_never_kept(
    tmp_path: Path,
) -> None:
    redactor, environ = Redactor(), {"SEARX_TOKEN": "correct-horse-battery-staple-99"}
    async with site({"/search": as_json(SEARXNG)}) as here:
        settings = configured(service="searxng", url=here.url("", "127.0.0.1"), key="SEARX_TOKEN")
        web = open_web(settings, environ, tmp_path, redactor)
        text = await web.search("boat", 5)
        # what searches may reach, pages may not
        reading = WebSettings.model_validate({"enabled": True, "ports": [here.port]})
        pages = open_web(reading, environ, tmp_path, redactor)
        with pytest.raises(WebFault, match="not on the public internet"):
            await pages.read(here.url("/", "127.0.0.1"))
    assert text.startswith(
        "Varnish for boats · 2026-03-01T00:00:00\nhttps://a.example/varnish\nTwo"
    )
    assert "authorization: bearer correct-horse" in here.heads[0].lower()
    assert "correct-horse" not in redactor.kept("it is correct-horse-battery-staple-99").text
    assert len(here.heads) == 1


async def test_a_key_that_is_nowhere_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    async with site({}) as here:
        settings = configured(service="brave", url=here.url("", "127.0.0.1"), key="BRAVE_KEY")
        with pytest.raises(WebFault, match=r"there is no BRAVE_KEY.*\[web\.search\]"):
            await open_web(settings, {}, tmp_path, Redactor()).search("x", 5)
    assert here.heads == []
