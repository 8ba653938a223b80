"""What a chat offers: completions, its own commands, the line below the prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agentd.app.chat.catalog import Catalog
from agentd.app.chat.completer import ChatCompleter, may_complete
from agentd.app.chat.slash import OWN, help_text, misspelt, parse, session_of_answer, session_table
from agentd.app.chat.statusline import status_text
from agentd.interfaces.commands.plain import TimeFormatter
from agentd.testing import FakeClock

_SESSIONS = [
    {"key": "main", "title": "tea\nand more", "updated_at": "2026-11-21T11:58:00+00:00"},
    {"key": "chat:1", "title": "x" * 90, "updated_at": "2026-11-19T09:00:00+00:00"},
]


class Shelf:
    """Sources of what stands here."""

    def commands(self):
        return [("sessions", "list"), ("status", "say"), ("switch", "go")]

    async def sessions(self):
        return [("main", "tea"), ("chat:1", "milk\x1b")]

    async def paths(self, folder):
        await asyncio.sleep(0)
        return {
            "": [("memory/", "folder"), ("MEMORY.md", "")],
            "memory/": [("memory/a.md", ""), ("memory/b\x1b.md", "")],
        }.get(folder, [])

    async def resources(self, server):
        await asyncio.sleep(0)
        return {
            "": [("mail:", "resources")],
            "mail": [("mail:inbox://1", "the first"), ("mail:sent://1", "")],
        }.get(server, [])


class Workspace:
    """A conversation in which nothing but the workspace is asked for."""

    async def call(self, method, params, within):
        assert method == "_agentd/memory/tree"
        return {"entries": [{"path": "memory", "is_dir": True}, {"path": "MEMORY.md"}]}


async def test_a_file_behind_the_at_sign_is_said_to_be_a_name_and_nothing_more():
    catalog = Catalog()
    catalog.conversation = Workspace()
    assert await catalog.paths("") == [
        ("memory/", "folder"),
        ("MEMORY.md", "a name, nothing attached"),
    ]
    assert "which the agent can look up (nothing is attached)" in help_text(OWN)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/s", ["sessions", "status", "switch"]),
        ("/sw", ["switch"]),
        ("/switch ", ["main", "chat:1"]),
        ("/switch ch", ["chat:1"]),
        ("look at @mem", ["memory/", "MEMORY.md"]),
        ("look at @memory/", ["memory/a.md"]),
        ("look at @m", ["mail:", "memory/", "MEMORY.md"]),
        ("look at @mail:in", ["mail:inbox://1"]),
        ("look at @mail:", ["mail:inbox://1", "mail:sent://1"]),
        ("look at @nobody:", []),
        ("@none/", []),
        ("mail me@mem", []),
        ("say /s", []),
        ("plain", []),
    ],
)
async def test_what_is_offered_behind_a_text(typed: str, offered: list[str]) -> None:
    completer = ChatCompleter(Shelf())
    found = completer.get_completions_async(Document(typed), CompleteEvent())
    assert [completion.text async for completion in found] == offered


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/image ", ["my\\ cat.png", "shots/"]),
        ("/image my\\ c", ["my\\ cat.png"]),
        ("/image shots/B", ["shots/b.jpg"]),
        ("/image ~/sh", ["~/shots/"]),
        ("/image .h", [".hidden.png"]),
        ("/image none/", []),
        ("/image ~nobody-of-that-name/", []),
        ("/image my\\ cat.png wh", []),
        ("say /image ", []),
    ],
)
async def test_image_completes_the_users_own_files(
    typed: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shots/b.jpg", "my cat.png", ".hidden.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    completer = ChatCompleter(Shelf())
    found = completer.get_completions_async(Document(typed), CompleteEvent())
    assert [completion.text async for completion in found] == offered


@pytest.mark.parametrize(("typed", "may"), [("/s", True), ("a @b", True), ("a@b", False)])
def test_where_a_menu_opens_by_itself(typed: str, may: bool) -> None:
    assert may_complete(typed) is may


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("/switch  chat:1 ", ("switch", "chat:1")),
        ("/quit", ("quit", "")),
        ("/new", None),
        ("/etc/hosts is a file", None),
        ("quit", None),
    ],
)
def test_only_commands_of_the_chat_stay_with_it(message: str, command: object) -> None:
    assert parse(message) == command


def test_sessions_have_numbers_ages_and_titles_on_one_line() -> None:
    clock = FakeClock(zone="UTC")
    lines = session_table(_SESSIONS, "chat:1", TimeFormatter(clock)).splitlines()
    assert len(lines) == 3
    assert "tea and more" in lines[1]
    assert "ago" in lines[1]
    assert "here" in lines[2]
    assert len(lines[2]) <= 80


@pytest.mark.parametrize(
    ("answer", "key"), [("2", "chat:1"), ("chat:9", "chat:9"), ("7", "7"), ("", None)]
)
def test_a_number_or_a_key_chooses(answer: str, key: str | None) -> None:
    assert session_of_answer(answer, _SESSIONS) == key


def test_the_status_line_says_where_who_how_full_and_how_dear() -> None:
    status = {
        "provider": {"kind": "anthropic", "model": "opus", "effective_window": 200_000},
        "sessions": [{"key": "main", "context_tokens": 50_000}],
        "cost": {"today_usd": 0.126},
        "problems": [{}],
    }
    told = "main · anthropic/opus · context 25% · today $0.13 · 1 problem: see `agentd status`"
    assert status_text(status, "main", 100) == told
    unpriced = {"cost": {"today_usd": 0.0, "today_tokens": 82_529}}
    assert status_text(unpriced, "main", 79) == "main · today 82,529 tokens"
    free = {**unpriced, "provider": {"kind": "offline", "model": "offline"}}
    assert status_text(free, "main", 80) == "main · offline"
    nothing = {"cost": {"today_usd": 0.0, "today_tokens": 0}}
    assert status_text(nothing, "main", 79) == "main · today $0.00"
    offline = {"provider": {"kind": "offline", "model": "offline"}}
    assert status_text(offline, "main", 79) == "main · offline"


@pytest.mark.parametrize("columns", [79, 60, 40, 30, 10])
def test_on_a_narrow_terminal_the_status_line_says_of_problems_first(columns: int) -> None:
    status = {
        "provider": {"kind": "anthropic", "model": "claude-opus", "effective_window": 200_000},
        "sessions": [{"key": "chat:0123456789", "context_tokens": 50_000}],
        "cost": {"today_usd": 0.126},
        "problems": [{}, {}],
    }
    line = status_text(status, "chat:0123456789", columns)
    assert len(line) <= columns
    whole = "2 problems: see `agentd status`"
    assert whole[:columns] in line or columns < len(whole)


@pytest.mark.parametrize(
    ("message", "is_told"),
    [
        ("/nope", True),
        ("/stats now", True),
        ("/status", False),
        ("/switch chat:1", False),
        ("/etc/hosts is broken", False),
        (" /nope", False),
        ("nope", False),
        ("/", False),
    ],
)
def test_a_command_that_there_is_not_is_told_and_other_messages_are_none(
    message: str, is_told: bool
) -> None:
    told = misspelt(message, [*OWN, ("status", "say")])
    assert (told is not None and message.split(maxsplit=1)[0] in told) is is_told
    assert misspelt(message, OWN) is None  # what the daemon has is not known yet


def test_no_line_of_the_help_is_wider_than_a_terminal() -> None:
    assert max(len(line) for line in help_text(OWN).splitlines()) <= 80
