from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from pydantic import ValidationError

from agentd.app.config import Config
from agentd.interfaces.web.web_settings import WebSettings


@pytest.mark.parametrize(
    "table",
    [
        {"permission": "maybe"},
        {"tools": {"web_dance": "allow"}},
        {"tools": {"web_fetch": "often"}},
        {"silent": ["memory_search"]},
        {"allowed_hosts": ["https://a.example"]},
        {"allowed_hosts": ["*.example"]},
        {"denied_hosts": ["a.example/x"]},
        {"denied_hosts": [""]},
        {"private": ["192.168.1.7/24"]},
        {"private": ["home"]},
        {"ports": [0]},
        {"ports": [70000]},
        {"timeout": "0s"},
        {"max_bytes": 5},
        {"max_redirects": -1},
        {"search": {"service": "google"}},
        {"search": {"service": "searxng"}},
        {"search": {"service": "searxng", "url": "localhost:8080"}},
        {"search": {"service": "searxng", "url": "http://me:word@localhost/"}},
        {"search": {"service": "searxng", "url": "http://localhost/?q=x"}},
        {"search": {"service": "brave"}},
        {"search": {"url": "http://localhost/"}},
        {"search": {"key": "KEY"}},
    ],
)
def test_what_means_nothing_is_refused(table: dict) -> None:
    with pytest.raises(ValidationError):
        WebSettings.model_validate(table)


def test_what_is_off_vouches_for_nothing() -> None:
    named = {"tools": {"web_search": "allow"}, "silent": ["web_fetch"], "permission": "allow"}
    assert WebSettings.model_validate(named).vouched == frozenset()
    on = WebSettings.model_validate({**named, "enabled": True})
    assert on.vouched == {"web_search", "web_fetch"}
    assert WebSettings(enabled=True, permission="allow").vouched == frozenset()


def test_brave_has_an_address_and_a_key_of_its_own() -> None:
    search = WebSettings.model_validate({"search": {"service": "brave", "key": "BRAVE_KEY"}})
    assert search.search.address == "https://api.search.brave.com"
    assert search.key_variables == ("BRAVE_KEY",)


def test_every_recipe_of_the_page_is_a_configuration() -> None:
    text = (Path(__file__).parents[2] / "docs/web.md").read_text(encoding="utf-8")
    recipes = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [Config.model_validate(tomli.loads(recipe)).web for recipe in recipes]
    assert [web.enabled for web in found] == [True, False, False, True]
    assert [web.search.service for web in found] == ["", "searxng", "brave", ""]
