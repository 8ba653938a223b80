"""The model's web tools: `web_fetch` and `web_search`. Both only read, and their outputs are
tainted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentd.core.errors import ToolFailed
from agentd.core.links import FETCH, SEARCH
from agentd.core.message import JsonObject
from agentd.core.ports import Tool, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.text import shorten
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import Origin, SessionKind, TurnRequest
from agentd.interfaces.tools.fence import in_backticks
from agentd.interfaces.web.web_faults import WebFault
from agentd.interfaces.web.web_settings import WebSettings

_BACKGROUND = frozenset({Origin.HEARTBEAT, Origin.JOB})
_AROUND = 400  # characters reserved for the backticks and the line before them
_RESULTS, _MOST_RESULTS = 5, 20
_LONGEST_QUERY = 400


class ReadsPages(Protocol):
    """Port: reads web pages."""

    async def read(self, url: str) -> str:
        """Return a page as text, with its address and title. Raises WebFault."""


class SearchesWeb(Protocol):
    """Port: searches the web."""

    async def search(self, query: str, limit: int) -> str:
        """Return at most `limit` results as text. Raises WebFault."""


class WebFetch:
    """The tool `web_fetch`: reads one page."""

    def __init__(self, reading: ReadsPages, settings: WebSettings, most: int) -> None:
        self._reading = reading
        self._most = most
        self.spec = _spec(
            FETCH,
            "Read a page of the web as text: its words, and its links as whole addresses.",
            {"url": {"type": "string", "description": "http:// or https://"}},
            settings,
            kind="fetch",
        )

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the page, tainted. A failure is an error output, tainted if it quotes the
        server.
        """
        try:
            text = await self._reading.read(str(call.input["url"]))
        except WebFault as fault:
            return _failure(call.name, fault)
        return _output(call.name, text, self._most)


class WebSearch:
    """The tool `web_search`: asks the configured search service."""

    def __init__(self, searching: SearchesWeb, settings: WebSettings, most: int) -> None:
        self._searching = searching
        self._most = most
        self.spec = _spec(
            SEARCH,
            "Search the web. web_fetch reads what is found.",
            {
                "query": {"type": "string"},
                "limit": {"type": "integer", "description": f"{_RESULTS} unless told otherwise"},
            },
            settings,
            kind="search",
        )

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the results, tainted. A failure is an error output."""
        limit = max(1, min(_MOST_RESULTS, int(call.input.get("limit", _RESULTS))))
        try:
            text = await self._searching.search(str(call.input["query"])[:_LONGEST_QUERY], limit)
        except WebFault as fault:
            return _failure(call.name, fault)
        return _output(call.name, text, self._most)


class WebSource:
    """The tool source of the web tools. The owner's sessions have them; beats and jobs have those
    that the setting `silent` names.
    """

    def __init__(self, tools: Sequence[Tool], settings: WebSettings) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._silent = frozenset(settings.silent)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Each tool's kind, by the tool's name."""
        return {name: tool.spec.kind for name, tool in self._tools.items()}

    def specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the specs of the web tools that the turn may call."""
        return tuple(tool.spec for tool in self._offered(request).values())

    def find(self, call: ToolCall, request: TurnRequest) -> tuple[Tool, ToolCall] | None:
        """Return the web tool that the call names, None if it names none. Raises ToolFailed for an
        input that does not fit the schema.
        """
        tool = self._offered(request).get(call.name)
        if tool is None:
            return None
        _check(call, tool.spec.input_schema)
        return tool, call

    def _offered(self, request: TurnRequest) -> dict[str, Tool]:
        if not request.is_silent and request.kind is SessionKind.OWNER:
            return self._tools
        # Jobs may run in isolated sessions, whose kind is not MAIN; they are the owner's as well.
        is_his = request.origin in _BACKGROUND and request.kind is not SessionKind.GROUP
        listed = self._silent if is_his else frozenset()
        return {name: tool for name, tool in self._tools.items() if name in listed}


def _spec(
    name: str, description: str, properties: JsonObject, settings: WebSettings, *, kind: str
) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [next(iter(properties))],
        "additionalProperties": False,
    }
    is_asked = settings.permission_of(name) == "ask"
    return ToolSpec(name, description, schema, Effect.READ_ONLY, kind=kind, asks=is_asked)


_KINDS: Mapping[str, type] = {"string": str, "integer": int}


def _check(call: ToolCall, schema: JsonObject) -> None:
    known = schema["properties"]
    for name in schema["required"]:
        if not call.input.get(name):
            raise ToolFailed(f"the input does not fit {call.name}: it needs {name}")
    for name, value in call.input.items():
        if name not in known:
            raise ToolFailed(f"the input does not fit {call.name}: it takes no {name[:50]}")
        kind = known[name]["type"]
        if not isinstance(value, _KINDS[kind]) or isinstance(value, bool):
            raise ToolFailed(f"the input does not fit {call.name}: {name} is no {kind}")


def _output(name: str, text: str, most: int) -> ToolOutput:
    text = in_backticks(shorten(text, most - _AROUND))
    return ToolOutput(f"{name} answered:\n{text}", tainted=True)


def _failure(name: str, fault: WebFault) -> ToolOutput:
    said = in_backticks(fault.message) if fault.is_told else f"{fault.message}."
    text = " ".join(filter(None, (f"{name} failed ({fault.kind}): {said}", fault.cure)))
    return ToolOutput(text, is_error=True, tainted=fault.is_told)
