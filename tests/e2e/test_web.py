"""Pages and searches, by the daemon as a model asks for them, on servers of this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.e2e.harness import Home
from tests.web.sites import Site, page, site

ARTICLE = (
    "<html><head><title>Boats</title></head><body><p>The boat needs <a "
    "href='/varnish'>varnish</a>.</p>"
)
FOUND = {"results": [{"url": "http://127.0.0.1:1/x", "title": "Found", "content": "words"}]}


@asynccontextmanager
async def served(home: Home, more: str = "", search: str = "") -> AsyncIterator[Site]:
    """A server whose pages the daemon may read, and which searches for it."""
    pages = {
        "/": page(ARTICLE),
        "/varnish": page("Two coats.", "text/plain"),
        "/search": page(json.dumps(FOUND), "application/json"),
    }
    async with site(pages) as here:
        service = search or f'service = "searxng"\nurl = "http://127.0.0.1:{here.port}"\n'
        home.configure(
            f"[web]\nenabled = true\nports = [{here.port}]\nprivate = ['127.0.0.1']\n{more}"
            f"[web.search]\n{service}"
        )
        yield here


def asks(here: Site, path: str = "/") -> str:
    return f"use web_fetch {json.dumps({'url': here.url(path, '127.0.0.1')})}"


def told(home: Home) -> str:
    return json.dumps(home.requests()[-1]["messages"])


def offered(home: Home) -> set[str]:
    return {t["name"] for t in home.requests()[-1]["tools"] if t["name"].startswith("web_")}


async def checked(client: Any) -> dict[str, Any]:
    found = (await client.call("_agentd/doctor"))["checks"]
    return next(one for one in found if one["code"] == "web")


async def test_the_user_is_asked_with_the_address_and_the_page_is_shown(home: Home) -> None:
    async with served(home) as here:
        daemon = await home.start()
        client = await daemon.connect()
        client.chooses = "allow_once"
        assert (
            await client.say(f"do {asks(here)}; {asks(here, '/varnish')}; say done", "m1") == "done"
        )
        assert [head.split()[1] for head in here.heads] == ["/", "/varnish"]
        assert f"[varnish](http://127.0.0.1:{here.port}/varnish)" in told(home)
        assert "Two coats." in told(home)
        first, second = (json.dumps(one) for one in client.asked)
        assert "Call web_fetch" in first
        assert f"http://127.0.0.1:{here.port}/" in first
        assert "text from outside may have chosen this call" not in first
        assert "text from outside may have chosen this call" in second
        assert [row["tainted"] for row in await client.export() if "Two coats" in json.dumps(row)]
        frames = [json.loads(line) for line in client.lines]
        updates = [f["params"]["update"] for f in frames if f.get("method") == "session/update"]
        begun = [one for one in updates if one["sessionUpdate"] == "tool_call"]
        assert begun[0]["kind"] == "fetch"
        await daemon.stop()


async def test_nothing_is_asked_for_without_a_yes_nor_where_it_is_off(home: Home) -> None:
    async with served(home) as here:
        daemon = await home.start()
        client = await daemon.connect()
        use = 'use web_search {"query": "boats"}'
        assert await client.say(f"do {asks(here)}; {use}; say done", "m1") == "done"
        assert (len(client.asked), here.heads) == (2, [])
        await daemon.stop()
        home.configure("[web]\n")
        daemon = await home.start()
        client = await daemon.connect()
        assert await client.say("say hello", "m2") == "hello"
        assert not offered(home)
        assert (await client.call("_agentd/status"))["web"]["enabled"] is False
        assert (await checked(client))["text"] == "the web is off"
        assert here.heads == []
        await daemon.stop()


async def test_what_is_allowed_by_name_and_stands_in_the_message_is_read_unasked(
    home: Home,
) -> None:
    allowed = 'tools = { web_fetch = "allow", web_search = "allow" }\n'
    async with served(home, allowed) as here:
        daemon = await home.start()
        client = await daemon.connect()
        steps = [asks(here), 'use web_search {"query": "boats"}', asks(here, "/varnish")]
        assert await client.say(f"do {'; '.join(steps)}; say done", "m1") == "done"
        assert [head.split()[1] for head in here.heads] == [
            "/",
            "/search?q=boats&format=json",
            "/varnish",
        ]
        assert client.asked == []
        assert "http://127.0.0.1:1/x" in told(home)
        await daemon.stop()


async def test_beats_have_what_is_listed_and_groups_have_nothing(home: Home) -> None:
    async with served(home, 'silent = ["web_fetch"]\n') as here:
        daemon = await home.start()
        client = await daemon.connect()
        steps = f"{asks(here)}; {asks(here, '/varnish')}; say HEARTBEAT_OK"
        steps = f'use look {{"entry": "do use"}}; {steps}'
        (home.workspace / "HEARTBEAT.md").write_text(f"- [ ] do {steps}\n")
        await client.call("_agentd/heartbeat/run", {"force": True})
        assert [head.split()[1] for head in here.heads] == ["/", "/varnish"]
        assert client.asked == []
        assert offered(home) == {"web_fetch"}
        job = {"text": f"- [ ] do {asks(here, '/job')}; say HEARTBEAT_OK", "in": "1d", "ask": True}
        added = await client.call("_agentd/jobs/add", job)
        await client.call("_agentd/jobs/run", {"id": added["id"]})
        assert [head.split()[1] for head in here.heads[2:]] == ["/job"]
        await client.call(
            "session/new", {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": "group:club"}}
        )
        assert await client.say("say hello", "m1", "group:club") == "hello"
        assert not offered(home)
        assert await client.say("say hello", "m2") == "hello"
        assert offered(home) == {"web_fetch", "web_search"}
        await daemon.stop()


async def test_status_and_doctor_say_how_searching_fares(home: Home) -> None:
    search = 'service = "searxng"\nurl = "http://127.0.0.1:1"\n'
    async with served(home, 'tools = { web_search = "allow" }\n', search):
        daemon = await home.start()
        client = await daemon.connect()
        found = await checked(client)
        assert found["level"] == "warn"
        assert "the search service cannot be asked: nobody answers there" in found["text"]
        assert await client.say('do use web_search {"query": "x"}; say done', "m1") == "done"
        status = await client.call("_agentd/status")
        assert status["web"] == {
            "enabled": True,
            "tools": {"web_fetch": "ask", "web_search": "allow"},
            "silent": [],
            "service": "searxng",
            "reason": "unreachable",
        }
        assert "web_unreachable" in {one["code"] for one in status["problems"]}
        await daemon.stop()


async def test_an_idle_daemon_with_the_web_on_has_loaded_nothing_for_it(home: Home) -> None:
    async with served(home):
        daemon = await home.start_alone()
        await daemon.connect()
        maps = Path(f"/proc/{daemon.process.pid}/maps").read_text()
        assert "lxml" not in maps
        await daemon.stop()
