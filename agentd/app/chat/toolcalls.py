"""The tool calls of a chat: a line for each, and the last one in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from agentd.core.ports import Clock
from agentd.interfaces.client.reply import words
from agentd.interfaces.commands.plain import counted

_LONGEST = 400  # lines of a result that are shown


class ShownCall(Struct):
    """A tool call. `seconds` is its duration; None while it runs."""

    title: str
    arguments: Mapping[str, Any]
    began: float
    seconds: float | None = None
    is_failed: bool = False
    text: str = ""

    def line(self, now: float) -> str:
        """Return the state of the call in one line."""
        title = " ".join(self.title.split()) or "a tool"
        if self.seconds is None:
            far = f", {self.first}" if self.text else ""
            return f"⋯ {title} … {max(0.0, now - self.began):.0f} s{far}"
        if self.is_failed:
            return f"✗ {title} failed, {self.seconds:.1f} s: {self.first}"
        return f"✓ {title} done, {self.seconds:.1f} s"

    @property
    def first(self) -> str:
        """The first line of the result."""
        return next((line for line in self.text.splitlines() if line.strip()), "no reason given")

    def full(self, now: float) -> Iterator[str]:
        """Yield all lines about the call: state, arguments, result."""
        yield self.line(now)
        for name, value in self.arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from _indented(f"{name}: {text}")
        if self.text:
            yield "  →"
            yield from _indented(self.text)


class ShownCalls(Struct):
    """The running calls, in their order, and the last call."""

    clock: Clock
    running: dict[str, ShownCall] = field(default_factory=dict)
    last: ShownCall | None = None

    def start(self, update: Mapping[str, Any]) -> ShownCall:
        """Add the call of a `tool_call` update."""
        arguments = update.get("rawInput")
        arguments = arguments if isinstance(arguments, Mapping) else {}
        call = ShownCall(str(update.get("title") or ""), arguments, self.clock.monotonic())
        self.running[str(update.get("toolCallId"))] = self.last = call
        return call

    def end(self, update: Mapping[str, Any]) -> ShownCall | None:
        """Apply a `tool_call_update`; returns the call if it has ended."""
        status = update.get("status")
        said = "\n".join(filter(None, map(words, update.get("content") or [])))
        if status == "in_progress" and (running := self.running.get(str(update.get("toolCallId")))):
            running.text = said  # progress
        if status not in {"completed", "failed"}:
            return None
        call = self.running.pop(str(update.get("toolCallId")), None)
        if call is None:
            call = ShownCall(str(update.get("title") or ""), {}, self.clock.monotonic())
        call.seconds = self.clock.monotonic() - call.began
        call.is_failed = status == "failed"
        call.text = said
        self.last = call
        return call


def _indented(text: str) -> Iterator[str]:
    lines = text.splitlines()
    yield from (f"    {line}" for line in lines[:_LONGEST])
    if len(lines) > _LONGEST:
        yield f"    … {counted(len(lines) - _LONGEST, 'more line')}"
