"""The slash commands that the chat runs itself."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from agentd.interfaces.commands.plain import TimeFormatter, span, table

Suggestion = tuple[str, str]  # the text to insert, its description

OWN: tuple[Suggestion, ...] = (
    ("sessions", "List the sessions and choose one"),
    ("switch", "Go to a session, a new one too: /switch chat:NAME"),
    ("image", "Send an image: /image PATH [what to say of it]"),
    ("expand", "Show the last tool call in full (Ctrl-O)"),
    ("quit", "Leave; what runs goes on (Ctrl-D)"),
    ("help", "Show this"),
)
_KEYS = (
    "Enter sends, Alt-Enter begins a new line, Ctrl-C cancels the running turn.",
    "Tab completes commands, sessions after /switch, images after /image,",
    "after @ names of notes, which the agent can look up (nothing is attached),",
    "and resources of servers, which go along.",
    "Ctrl-R searches what was typed before.",
)
_WORD = re.compile(r"/[a-z][a-z_-]*")
_PATH = re.compile(r"""(?P<quote>["'])(?P<quoted>.+?)(?P=quote)|(?P<plain>(?:\\ |\S)+)""")
_BESIDE_TITLE = 45  # columns of the other columns


def parse(message: str) -> tuple[str, str] | None:
    """Return the name and the rest of a message that is a command of the chat itself; None for any
    other.
    """
    name, _, rest = message.strip().partition(" ")
    known = {f"/{own}" for own, _ in OWN}
    return (name[1:], rest.strip()) if name in known and "\n" not in rest else None


def image_and_words(rest: str) -> tuple[str, str] | None:
    """Return the path and the words after `/image`, None if there is no path. A path with spaces is
    quoted or escaped.
    """
    found = _PATH.match(rest)
    if found is None:
        return None
    path = found["quoted"] or found["plain"].replace("\\ ", " ")
    return path, rest[found.end() :].strip()


def misspelt(message: str, commands: Sequence[Suggestion]) -> str | None:
    """Return what to tell the user of a message that looks like a command but is none of
    `commands`; None for any other, and until the daemon's commands are known.
    """
    first = message.partition("\n")[0].partition(" ")[0].rstrip()
    is_known = first in {f"/{name}" for name, _ in commands}
    if is_known or len(commands) <= len(OWN) or not _WORD.fullmatch(first):
        return None
    return f"there is no {first}; /help lists what there is (a space before it sends it as words)"


def help_text(commands: Sequence[Suggestion]) -> str:
    """Return the list of commands and keys."""
    width = max(len(name) for name, _ in commands) + 1
    lines = [f"{'/' + name:<{width}}  {what}" for name, what in commands]
    return "\n".join([*lines, *_KEYS])


def session_table(sessions: Sequence[Mapping[str, Any]], here: str, times: TimeFormatter) -> str:
    """Return the sessions with their numbers, titles and ages."""
    room = max(10, shutil.get_terminal_size().columns - _BESIDE_TITLE)
    rows = [
        {
            "#": number,
            "key": session.get("key"),
            "title": _clipped(" ".join(str(session.get("title") or "").split()), room),
            "last used": "here" if session.get("key") == here else _age(session, times),
        }
        for number, session in enumerate(sessions, start=1)
    ]
    return table(rows, ("#", "key", "last used", "title"), "no sessions yet")


def session_of_answer(answer: str, sessions: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the session key that a number or a key names; None for an empty answer."""
    keys = {str(number): str(one.get("key")) for number, one in enumerate(sessions, start=1)}
    return keys.get(answer, answer) or None


def _age(session: Mapping[str, Any], times: TimeFormatter) -> str:
    try:
        age = times.age(str(session.get("updated_at")))
    except ValueError:
        return ""
    return f"{' '.join(span(age).split()[:2])} ago"


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
