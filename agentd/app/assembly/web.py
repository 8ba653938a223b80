"""The web, as configured: what is needed for it is loaded by the first call."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.app.assembly.ground import Ground
from agentd.core.links import FETCH, SEARCH
from agentd.core.ports import Tool
from agentd.interfaces.web.browser import Browser, opening
from agentd.interfaces.web.web_tools import WebFetch, WebSearch, WebShelf


@dataclass(frozen=True, slots=True)
class WebParts:
    """What reads pages and searches, and the tools that do."""

    browser: Browser
    shelf: WebShelf


def build_web(ground: Ground) -> WebParts:
    """The tools that are on; nothing is loaded or asked."""
    settings, most = ground.config.web, ground.config.agent.max_tool_output
    folder = ground.places.state_dir
    browser = Browser(settings, opening(settings, ground.environ, folder, ground.redactor))
    tools: dict[str, Tool] = {
        FETCH: WebFetch(browser, settings, most),
        SEARCH: WebSearch(browser, settings, most),
    }
    return WebParts(browser, WebShelf([tools[name] for name in browser.offered], settings))
