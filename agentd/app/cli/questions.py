"""What `agentd init` asks on a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import available_timezones

import typer

from agentd.app.cli.report import say
from agentd.core.service import OPENAI_URL

Answer = tuple[str, str, str | bool]  # table, key, value

_PROVIDERS = ("auto", "anthropic", "openai", "offline")
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ZONE_LINK = Path("/etc/localtime")


def ask_settings() -> Iterator[Answer]:
    """The settings that differ from the defaults, asked one by one."""
    say("auto: Anthropic if there is a key for it, else fixed rules without a model.")
    kind = _ask("Model provider (" + ", ".join(_PROVIDERS) + ")", "auto", _PROVIDERS)
    if kind != "auto":
        yield "provider", "kind", kind
    if kind == "openai":
        yield from _openai()
    if kind in _KEYS:
        variable = typer.prompt("Environment variable that holds the key", default=_KEYS[kind])
        yield "provider", "api_key_env", variable
        if not os.environ.get(variable):
            say(f"  {variable} is not set here; if the service wants a key, set it first.")
    yield "agent", "timezone", _ask("Time zone", _system_zone(), available_timezones())
    say("The heartbeat looks at your checklist during active hours only.")
    start, end = _hours()
    yield "heartbeat", "active_hours_start", start
    yield "heartbeat", "active_hours_end", end


def _openai() -> Iterator[Answer]:
    """OpenAI itself, or any server that speaks like it: then the address and the model matter."""
    url = typer.prompt("Address of the service", default=OPENAI_URL).strip()
    if url != OPENAI_URL:
        yield "provider", "base_url", url
    yield "provider", "model", typer.prompt("Model").strip()


def _ask(question: str, default: str, known: set[str] | tuple[str, ...]) -> str:
    while True:
        answer: str = typer.prompt(question, default=default).strip()
        if answer in known:
            return answer
        say(f"  {answer!r} is not known.")


def _hours() -> tuple[str, str]:
    """A window that the configuration takes: a refusal comes here, not at the daemon's start."""
    while True:
        start = _time("Active from (HH:MM)", "08:00")
        if start == "24:00":
            say('  A day begins at 00:00; "24:00" is only an end.')
            continue
        end = _time("Active until (HH:MM)", "22:00")
        if start != end:
            return start, end
        say("  These are equal, which could mean always or never; always is 00:00 to 24:00.")


def _time(question: str, default: str) -> str:
    while True:
        answer: str = typer.prompt(question, default=default).strip()
        hours, _, minutes = answer.partition(":")
        if hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2:
            total = int(hours) * 60 + int(minutes)
            if int(minutes) < 60 and total <= 24 * 60:
                return f"{int(hours):02}:{minutes}"
        say(f"  {answer!r} is not a time of day like 08:00.")


def _system_zone() -> str:
    name = os.environ.get("TZ", "").lstrip(":")
    if name not in available_timezones():
        name = str(_ZONE_LINK.resolve()).partition("zoneinfo/")[2]
    return name if name in available_timezones() else "UTC"
