"""What `memory_search` and `memory_read` have answered, as lines that name their place. Pure.

memory/2026-11-21.md:1-3 (2026-11-21, notes)
```text
…
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentd.domain.workspace import FACTS_PATH

_HEAD = re.compile(
    r"(?P<path>\S.{0,400}):(?P<first>\d{1,9})-(?P<last>\d{1,9})"
    r"(?: \((?:(?P<date>[\d-]{10}), )?(?:notes|sessions)(?P<older>; older, see \S.{0,420})?\))?"
)
_BAR = re.compile(r"(`{3,})text")
_SPOKEN = re.compile(r"\[(user|assistant)\] ")
_STAMP = re.compile(r"\s*(?:[-*+]\s+)?(?:\[\d{2}:\d{2}\]\s*)?(?:\[[ xX]?\]\s+)?")
_ENTRY = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\S")
_TICKED = re.compile(r"\s*[-*+]\s+\[[xX]\]")
_REMARK = re.compile(r"(?<!\s)\s*+<!--[^<>]{0,200}-->")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*---+\s*\Z")
_DEPTH, _PARENT_CHARS = 6, 200  # of the entries that a line stands under


@dataclass(frozen=True, slots=True)
class Line:
    """A line of memory. `text` is without list marks and remarks; `speaker` is "user" or
    "assistant" in transcripts, "" in notes; `date` is ISO, "" if the file has none; `context` is what
    the line stands under: the file's name, the heading, the entries it is part of.
    """

    place: str  # `memory/2026-11-21.md:3`
    text: str
    date: str = ""
    speaker: str = ""
    number: int = 0
    context: str = ""
    is_heading: bool = False
    is_entry: bool = False  # of a list
    is_ticked: bool = False
    is_foreign: bool = False
    is_older: bool = False  # something newer says the same, or otherwise

    @property
    def is_fact(self) -> bool:
        """Whether it stands on the page of facts."""
        return self.place.startswith(FACTS_PATH)

    @property
    def is_note(self) -> bool:
        """Whether it stands in a file rather than in a transcript."""
        return not self.speaker


@dataclass(frozen=True, slots=True)
class _Block:
    path: str
    first: int
    last: int
    date: str
    body: tuple[str, ...]
    is_older: bool = False


def lines(output: str) -> tuple[Line, ...]:
    """All lines with words of a tool's output, in its order."""
    return tuple(line for block in _blocks(output) for line in _lines_of(block) if line.text)


def _blocks(output: str) -> Iterator[_Block]:
    rows = iter(output.split("\n"))
    head: re.Match[str] | None = None
    for row in rows:
        bar = _BAR.fullmatch(row)
        if head is None or bar is None:
            head = _HEAD.fullmatch(row)
            continue
        body: list[str] = []
        for inner in rows:
            if inner == bar[1]:
                break
            body.append(inner)
        yield _Block(
            head["path"],
            int(head["first"]),
            int(head["last"]),
            head["date"] or "",
            tuple(body),
            head["older"] is not None,
        )
        head = None


def _lines_of(block: _Block) -> Iterator[Line]:
    if block.path.startswith("sessions/"):
        yield from _spoken(block)
        return
    above = _Above(block.path)
    for number, raw in enumerate(block.body, block.first):
        text = _REMARK.sub("", _STAMP.sub("", raw, count=1)).strip()
        yield Line(
            f"{block.path}:{number}",
            text,
            block.date,
            number=number,
            context=above.of(raw, text),
            is_heading=_HEADING.match(raw) is not None,
            is_entry=_ENTRY.match(raw) is not None,
            is_ticked=_TICKED.match(raw) is not None,
            is_foreign="origin=untrusted" in raw or block.path.startswith("@"),
            is_older=block.is_older,
        )


class _Above:
    """What lines stand under, while they go by."""

    def __init__(self, path: str) -> None:
        self._name = path.rsplit("/", 1)[-1].removesuffix(".md")
        self._heading = ""
        self._parents: list[tuple[int, str]] = []

    def of(self, raw: str, text: str) -> str:
        """The context of the next line."""
        if _HEADING.match(raw):
            self._heading, self._parents = text, []
            return self._name
        indent = len(raw) - len(raw.lstrip())
        while self._parents and self._parents[-1][0] >= indent:
            self._parents.pop()
        context = " ".join((self._name, self._heading, *(parent for _, parent in self._parents)))
        if text and len(self._parents) < _DEPTH:
            self._parents.append((indent, text[:_PARENT_CHARS]))
        return context


def _spoken(block: _Block) -> Iterator[Line]:
    """Lines of a transcript. Rows without words are not shown, so only the ends of a span, or a span
    that shows all its rows, name a row exactly.
    """
    starts = sum(1 for raw in block.body if _SPOKEN.match(raw))
    is_exact = starts == block.last - block.first + 1
    speaker, row = "user", -1
    for raw in block.body:
        if match := _SPOKEN.match(raw):
            speaker, row = match[1], row + 1
        place = f"{block.path}:{block.first}-{block.last}"
        if is_exact or row <= 0:
            place = f"{block.path}:{block.first + max(0, row)}"
        elif row == starts - 1:
            place = f"{block.path}:{block.last}"
        text = raw[match.end() :] if match else raw
        number = block.first + max(0, row)
        yield Line(place, text.strip(), block.date, speaker, number, is_older=block.is_older)
