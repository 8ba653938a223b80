"""`paragraphs`: one paragraph, or one entry of a list with what is below it; small, so that a hit
names the very lines. What stands above it goes along as context, and who speaks as speaker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby, zip_longest

from agentd.memory.chunkers.blocks import Block, Shape, blocks, is_bare
from agentd.memory.chunkers.dates import date_in, without_dates
from agentd.memory.chunkers.piece import Lines, Piece, tokens_in
from agentd.memory.chunkers.tokens import packed

TOKENS = 200
SHORT = 8  # tokens: what is shorter may be joined with what stands next to it
JOINED = 30  # tokens up to which it is
_LEAD = 40  # tokens of a line that introduces a list, at most
_OPENING = 120  # letters of an entry's or a table's first line that its later pieces carry

_SPEAKER = re.compile(
    r"(?:[-*+]\s+)?"
    r"(?:[\[(]?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[APap][Mm])?[\])]?\s+)?"
    r"(?:\*\*(?P<bold>[^*:]{1,40})(?::\*\*|\*\*:)"
    r"|(?P<plain>[^\W\d_][^\s:*]{0,20}(?:\s[^\W\d_][^\s:*]{0,20}){0,2}):)(?:\s|$)"
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Lines that belong together. `body` is the first one that is no heading; units of one `section`
    have the same headings above them.
    """

    shape: Shape
    first: int
    body: int
    end: int
    section: int
    above: tuple[str, ...]
    day: date | None
    speaker: str = ""


def pieces(file: Lines, most: int = TOKENS) -> Iterator[Piece]:
    """The chunks of a markdown file. One of more than `most` tokens is cut, at lines if it can be."""
    units = _Reader(file).units()
    spoken = [unit for _, section in groupby(units, _section) for unit in _spoken(file, section)]
    for unit in _joined(file, spoken):
        yield from _pieces(file, unit, most)


class _Reader:
    """Walks through the blocks of a file and knows what stands above each."""

    def __init__(self, file: Lines) -> None:
        self._file = file
        self._headings: list[Block] = []
        self._section = 0
        self._waiting = -1  # the line of a heading or lead that the next block takes along
        self._lead: Block | None = None  # what introduces the entries that follow
        self._units: list[_Unit] = []

    def units(self) -> list[_Unit]:
        """Every block that is no heading, with the headings right above it."""
        found = list(blocks(self._file.lines))
        for block, after in zip_longest(found, found[1:]):
            if block.shape is Shape.HEADING:
                self._open(block)
            elif block.end - block.first == 1 and is_bare(self._file.lines[block.first]):
                self._attach(block)
            elif self._introduces(block, after):
                self._wait(block.first)
                self._lead = block
                self._section += 1
            else:
                self._add(block)
        if self._waiting >= 0:
            self._close(found[-1].end)
        return self._units

    def _open(self, heading: Block) -> None:
        last = self._headings[-1] if self._headings else None
        if self._waiting >= 0 and last and last.level >= heading.level:
            self._close(heading.first)  # nothing stands below that one
        self._headings = [h for h in self._headings if h.level < heading.level]
        self._headings.append(heading)
        self._lead = None
        self._section += 1
        self._wait(heading.first)

    def _wait(self, line: int) -> None:
        self._waiting = line if self._waiting < 0 else self._waiting

    def _attach(self, block: Block) -> None:
        """A rule is no unit: it goes with what is before it, or else with what follows."""
        if self._units and self._waiting < 0:
            self._units[-1] = replace(self._units[-1], end=block.end)
        else:
            self._wait(block.first)

    def _introduces(self, block: Block, after: Block | None) -> bool:
        text = self._file.whole(block.first, block.end).text
        return (
            block.shape is Shape.TEXT
            and after is not None
            and after.shape is Shape.ENTRY
            and text.rstrip(" *_").endswith(":")
            and tokens_in(text) <= _LEAD
        )

    def _add(self, block: Block) -> None:
        if block.shape is not Shape.ENTRY and self._lead is not None:
            self._lead = None
            self._section += 1
        first = block.first if self._waiting < 0 else self._waiting
        self._waiting = -1
        self._units.append(
            _Unit(
                block.shape,
                first,
                block.first,
                block.end,
                self._section,
                self._above(first),
                self._day(),
            )
        )

    def _close(self, end: int) -> None:
        first, self._waiting = self._waiting, -1
        end = next(n for n in range(end, first, -1) if self._file.lines[n - 1].strip())
        self._units.append(
            _Unit(Shape.HEADING, first, first, end, self._section, self._above(first), self._day())
        )

    def _above(self, first: int) -> tuple[str, ...]:
        """The headings and the lead above a line, without those that only name a day."""
        titles = [without_dates(h.title) for h in self._headings if h.first < first]
        if self._lead is not None and self._lead.first < first:
            titles.append(
                self._file.whole(self._lead.first, self._lead.end).text.strip().rstrip(":")
            )
        return tuple(title for title in titles if title)

    def _day(self) -> date | None:
        days = (date_in(heading.title) for heading in reversed(self._headings))
        return next((day for day in days if day), None)


def _section(unit: _Unit) -> int:
    return unit.section


def _spoken(file: Lines, section: Iterator[_Unit]) -> Iterator[_Unit]:
    """The units with their speakers, where a section is a conversation: most of its units begin with
    a name, and one of the names comes again.
    """
    units = list(section)
    names = [_name(file.lines[unit.body]) for unit in units]
    counts = Counter(name for name in names if name)
    is_talk = 2 * counts.total() >= len(units) and max(counts.values(), default=0) > 1
    for unit, name in zip(units, names, strict=True):
        yield replace(unit, speaker=name) if is_talk and name else unit


def _name(line: str) -> str:
    found = _SPEAKER.match(line)
    return (found["bold"] or found["plain"]).strip() if found else ""


def _joined(file: Lines, units: Sequence[_Unit]) -> Iterator[_Unit]:
    """The units, short ones joined with their neighbours of the same kind in their section."""
    held: _Unit | None = None
    for unit in units:
        if held is not None and _belong(file, held, unit):
            held = replace(held, end=unit.end)
            continue
        if held is not None:
            yield held
        held = unit
    if held is not None:
        yield held


def _belong(file: Lines, one: _Unit, other: _Unit) -> bool:
    if (one.section, one.shape) != (other.section, other.shape) or one.speaker or other.speaker:
        return False
    sizes = [tokens_in(file.whole(unit.body, unit.end).text) for unit in (one, other)]
    return min(sizes) < SHORT and sum(sizes) <= JOINED


def _pieces(file: Lines, unit: _Unit, most: int) -> Iterator[Piece]:
    whole = file.whole(unit.first, unit.end)
    cost = tokens_in(whole.text)
    found = [whole]
    if cost > most:
        count = -(-cost // most)
        found = list(packed(file, unit.first, unit.end, min(most, cost // count + most // 8)))
    above = unit.above
    for number, piece in enumerate(found):
        if number == 1 and unit.shape in {Shape.ENTRY, Shape.TABLE}:
            above = (*above, file.lines[unit.body].strip()[:_OPENING])
        yield replace(piece, speaker=unit.speaker, context=" / ".join(above), day=unit.day)
