"""`python -m benchmarks.workspace_year.make`: assemble the workspace from the hand-written pieces.

The pieces say what happened; this places them on their days among small talk, and finds the line of
every anchor, so that gold lines are exact. The same pieces always give the same files.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.workspace_year.pieces import (
    Line,
    Message,
    Pieces,
    Question,
    Talk,
    read_blocks,
    read_facts,
    read_lists,
    read_rows,
)

HERE = Path(__file__).parent
FIRST, LAST = date(2025, 11, 3), date(2026, 11, 10)
ASKED_ON = date(2026, 11, 12)
NOTE_DAYS = 235
QUIET_TALKS = 84
_UNDATED_AT_TOP = ("MEMORY.md", "USER.md")
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class Made:
    """The files by path, and where each anchor came to lie."""

    files: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)

    def append(self, path: str, text: str, anchor: str = "") -> None:
        """Add a line to a file."""
        rows = self.files.setdefault(path, [])
        rows.append(text)
        if anchor:
            if anchor in self.places:
                raise ValueError(f"anchor {anchor} stands twice")
            self.places[anchor] = (path, len(rows))


class Deck:
    """Deals pieces of filler: every one is dealt before any comes again, with its slots filled."""

    def __init__(self, rng: random.Random, lists: dict[str, list[str]]) -> None:
        self._rng = rng
        self._lists = lists
        self._left: dict[int, list[Any]] = {}

    def deal(self, pile: Sequence[Any]) -> Any:
        """The next piece of this pile."""
        left = self._left.setdefault(id(pile), [])
        if not left:
            left.extend(pile)
            self._rng.shuffle(left)
        return left.pop()

    def fill(self, text: str, chosen: dict[str, str] | None = None) -> str:
        """The text with slots filled; a slot that comes twice says the same both times."""
        chosen = {} if chosen is None else chosen

        def value(slot: re.Match[str]) -> str:
            name = slot[1]
            if name not in chosen:
                low_high = name.removeprefix("n").split("to")
                chosen[name] = (
                    str(self._rng.randint(int(low_high[0]), int(low_high[1])))
                    if len(low_high) == 2 and low_high[0].isdigit()
                    else self._rng.choice(self._lists[name.rstrip("2")])
                )
            return chosen[name]

        return _SLOT.sub(value, text)


def make() -> dict[str, str]:
    """Every file of the workspace, by path below this directory, with its text."""
    folder = HERE / "pieces"
    facts = read_facts(sorted(folder.glob("facts_*.txt")))
    rng = random.Random(20261110)
    deck = Deck(rng, read_lists(folder / "lists.txt"))
    made = Made()
    _write_undated(made, facts)
    _write_days(made, facts, deck, rng, folder)
    _write_talks(made, facts, deck, rng, folder)
    texts = {_home(path): "\n".join(rows) + "\n" for path, rows in made.files.items()}
    texts["questions.jsonl"] = "".join(_asked(facts.questions, made))
    return texts


def write() -> None:
    """Replace the workspace, the sessions and the questions on disk."""
    texts = make()
    for name in ("workspace", "sessions"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    for name, text in texts.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _home(path: str) -> str:
    return path if path.startswith("sessions/") else f"workspace/{path}"


def _write_undated(made: Made, facts: Pieces) -> None:
    for name, lines in facts.files.items():
        path = name if name in _UNDATED_AT_TOP else f"memory/{name}"
        for line in lines:
            if line.text.startswith("#") and made.files.get(path):
                made.append(path, "")
            made.append(path, line.text, line.anchor)


def _write_days(made: Made, facts: Pieces, deck: Deck, rng: random.Random, folder: Path) -> None:
    filler = read_rows(folder / "filler_notes.txt")
    headings = read_rows(folder / "headings.txt")
    every = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    spare = [day for day in every if day not in facts.notes]
    days = sorted({*facts.notes, *rng.sample(spare, max(0, NOTE_DAYS - len(facts.notes)))})
    for day in days:
        path = f"memory/{day.isoformat()}.md"
        made.append(path, f"# {day.isoformat()} {day.strftime('%A')}")
        lines: list[Line] = list(facts.notes.get(day, []))
        wanted = len(lines) + rng.choice((4, 6, 8, 9, 10, 12, 15))
        while len(lines) < wanted:
            lines.insert(rng.randint(0, len(lines)), Line(_season(deck, filler, day)))
        _write_day(made, path, lines, rng, deck, headings)


def _season(deck: Deck, filler: list[str], day: date) -> str:
    """A piece of filler that fits the month: `[06-08] text` belongs to summer."""
    while True:
        text = deck.deal(filler)
        months = re.match(r"\[(\d\d)-(\d\d)\] ", text)
        if months is None:
            return deck.fill(text)
        low, high = int(months[1]), int(months[2])
        inside = low <= day.month <= high if low <= high else day.month >= low or day.month <= high
        if inside:
            return deck.fill(text[months.end() :])


def _write_day(
    made: Made,
    path: str,
    lines: list[Line],
    rng: random.Random,
    deck: Deck,
    headings: list[str],
) -> None:
    style = rng.choice(("bullets", "sections", "sections", "prose"))
    until_heading = 0
    made.append(path, "")
    for line in lines:
        if style == "sections" and until_heading == 0:
            if made.files[path][-1]:
                made.append(path, "")
            made.append(path, f"## {deck.deal(headings)}")
            until_heading = rng.randint(2, 6)
        until_heading -= 1
        plain = style == "prose" or line.text.startswith(("#", ">", "|", "- ", "  ", "!"))
        made.append(path, line.text.removeprefix("!") if plain else f"- {line.text}", line.anchor)
        if style == "prose" and rng.random() < 0.4:
            made.append(path, "")
    if not made.files[path][-1]:
        made.files[path].pop()


def _write_talks(made: Made, facts: Pieces, deck: Deck, rng: random.Random, folder: Path) -> None:
    blocks = read_blocks(folder / "filler_chat.txt")
    replies = read_rows(folder / "unknown.txt")
    quiet = [
        Talk(FIRST + timedelta(days=rng.randint(0, (LAST - FIRST).days)), f"talk{n:02d}")
        for n in range(QUIET_TALKS)
    ]
    asked: dict[str, list[list[Message]]] = {}
    for question in facts.questions:
        for echo in question.echoes:
            talk = rng.choice(quiet)
            pair = [Message("u", Line(echo)), Message("a", Line(deck.deal(replies)))]
            asked.setdefault(talk.name, []).append(pair)
    for talk in sorted([*facts.talks, *quiet], key=lambda one: (one.day, one.name)):
        parts = [_filled(deck, deck.deal(blocks)) for _ in range(rng.choice((2, 3, 3, 4)))]
        for known in [*asked.get(talk.name, []), *([talk.messages] if talk.messages else [])]:
            parts.insert(rng.randint(0, len(parts)), known)
        _write_talk(made, talk, parts, rng)


def _filled(deck: Deck, block: list[Message]) -> list[Message]:
    chosen: dict[str, str] = {}
    return [Message(one.who, Line(deck.fill(one.line.text, chosen))) for one in block]


def _write_talk(made: Made, talk: Talk, parts: list[list[Message]], rng: random.Random) -> None:
    path = f"sessions/{talk.day.isoformat()}-{talk.name}.jsonl"
    clock = datetime(talk.day.year, talk.day.month, talk.day.day, tzinfo=UTC)
    clock += timedelta(hours=rng.randint(6, 17), seconds=rng.randint(0, 3599))
    for part in parts:
        for message in part:
            for role, content in _said(message, rng):
                clock += timedelta(seconds=rng.randint(6, 90))
                row = {"role": role, "content": content, "timestamp": clock.isoformat()}
                text = json.dumps(row, ensure_ascii=False)
                anchor = message.line.anchor if role != "tool" else ""
                made.append(path, text, anchor)
        clock += timedelta(seconds=rng.randint(120, 2400))


def _said(message: Message, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """The transcript rows of a message: text or blocks; a tool's answer comes with its call."""
    text = message.line.text
    if message.who == "t":
        tool, output = text.split(": ", 1)
        call = f"toolu_{rng.randrange(16**10):010x}"
        yield "assistant", [{"type": "tool_use", "id": call, "name": tool, "input": {}}]
        yield "user", [{"type": "tool_result", "tool_use_id": call, "content": output}]
    elif message.who == "a" and rng.random() < 0.5:
        yield "assistant", [{"type": "text", "text": text}]
    else:
        yield ("assistant" if message.who == "a" else "user"), text


def _asked(questions: list[Question], made: Made) -> Iterator[str]:
    counts: dict[str, int] = {}
    for question in questions:
        number = counts[question.type] = counts.get(question.type, 0) + 1
        now = question.now or ASKED_ON
        row = {
            "id": f"{question.type}-{number:02d}",
            "type": question.type,
            "split": "dev" if (number - 1) // 2 % 2 == 0 else "test",
            "query": question.query,
            "now": f"{now.isoformat()}T09:00:00+00:00",
            "need": "all" if question.every else "any",
            "gold": [_place(anchor, made) for anchor in question.gold],
            "stale": [_place(anchor, made) for anchor in question.stale],
            "note": " ".join(question.gold),
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _place(anchor: str, made: Made) -> dict[str, Any]:
    path, line = made.places[anchor]
    return {"path": path, "line": line}


if __name__ == "__main__":
    write()
