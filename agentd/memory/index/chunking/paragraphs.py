"""`paragraphs`: a chunk is one paragraph, or one list entry with everything indented below it.

Chunks are small, so that a hit names the lines that match. The headings above a chunk go into its
context, and the name at the beginning of a line in a conversation becomes its speaker.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from datetime import date
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.times import date_in, without_dates
from agentd.memory.index.chunking.piece import Lines, Piece, tokens_in
from agentd.memory.index.chunking.tokens import pack_lines

_HEADING = re.compile(r"(#{1,6})(?:\s+(.*)|\s*)$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ENTRY = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s+\S|\s*$)")
_FRONT = 60  # lines of a file within which its front matter must end
_WORDS = re.compile(r"\w")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]*_]*\s*$")


class BlockShape(StrEnum):
    """The kind of a markdown block."""

    HEADING = "heading"
    TEXT = "text"
    ENTRY = "entry"
    QUOTE = "quote"
    TABLE = "table"
    CODE = "code"


class ParagraphBlock(Struct, frozen=True):
    """A block of lines from `first` up to but not including `end`; its first and last lines are not
    blank.
    """

    shape: BlockShape
    first: int
    end: int
    level: int = 0  # of a heading
    title: str = ""


def blocks(lines: Sequence[str]) -> Iterator[ParagraphBlock]:
    """Yield the blocks of markdown lines, in order: headings, paragraphs, list entries with what is
    indented below them, quotes, tables, code. Every non-blank line belongs to a block.
    """
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        block = _block(lines, at)
        yield from _statements(lines, block) if block.shape is BlockShape.TEXT else (block,)
        at = block.end


def is_bare(line: str) -> bool:
    """Whether a line has no letter and no digit, such as a horizontal rule."""
    return not _WORDS.search(line)


def may_begin_anew(lines: Sequence[str]) -> bool:
    """Whether an appended line may close front matter that is still open, and so change every
    block.
    """
    is_short = len(lines) < _FRONT
    return is_short and lines[0].rstrip() == "---" and not _after_front(lines)


def _block(lines: Sequence[str], at: int) -> ParagraphBlock:
    line = lines[at]
    if heading := _HEADING.match(line):
        return ParagraphBlock(
            BlockShape.HEADING, at, at + 1, len(heading[1]), _title(heading[2] or "")
        )
    if fence := _FENCE.match(line):
        return ParagraphBlock(BlockShape.CODE, at, _after_fence(lines, at, fence[1]))
    if at == 0 and line.rstrip() == "---" and (end := _after_front(lines)):
        return ParagraphBlock(BlockShape.CODE, at, end)
    if entry := _ENTRY.match(line):
        return ParagraphBlock(BlockShape.ENTRY, at, _after_entry(lines, at, len(entry[1])))
    shape = _shape(line)
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _begins(lines[end], shape):
        end += 1
    return ParagraphBlock(shape, at, end)


def _statements(lines: Sequence[str], block: ParagraphBlock) -> Iterator[ParagraphBlock]:
    """Split a paragraph after each line that ends a sentence, if its lines were not wrapped at a
    width.
    """
    first = block.first
    if _is_ragged(lines[block.first : block.end]):
        for n in range(block.first, block.end - 1):
            if _SENTENCE_END.search(lines[n]) and not lines[n + 1].lstrip()[:1].islower():
                yield ParagraphBlock(BlockShape.TEXT, first, n + 1)
                first = n + 1
    yield ParagraphBlock(BlockShape.TEXT, first, block.end)


def _is_ragged(lines: Sequence[str]) -> bool:
    """Whether the lines were broken by hand: at half of the line ends or more, the next word would
    have fitted on the line.
    """
    width = max(map(len, lines))
    fitting = sum(
        len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) <= width
        for line, after in pairwise(lines)
    )
    return 2 * fitting >= len(lines) - 1


def _shape(line: str) -> BlockShape:
    start = line.lstrip()[:1]
    return {">": BlockShape.QUOTE, "|": BlockShape.TABLE}.get(start, BlockShape.TEXT)


def _begins(line: str, shape: BlockShape) -> bool:
    """Whether a line begins a new block rather than continuing the block of this shape above it."""
    other = _shape(line) is not shape
    return other or any(mark.match(line) for mark in (_HEADING, _FENCE, _ENTRY))


def _title(words: str) -> str:
    """Return a heading's text without closing `#` marks."""
    words = words.strip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare[-1:].isspace() else words


def _after_fence(lines: Sequence[str], at: int, mark: str) -> int:
    close = re.compile(rf"\s{{0,3}}{re.escape(mark)}{re.escape(mark[0])}*\s*$")
    ends = (n + 1 for n in range(at + 1, len(lines)) if close.match(lines[n]))
    return next(ends, len(lines))


def _after_front(lines: Sequence[str]) -> int:
    ends = (n + 1 for n in range(1, min(len(lines), _FRONT)) if lines[n].rstrip() == "---")
    return next(ends, 0)


def _after_entry(lines: Sequence[str], at: int, indent: int) -> int:
    """Return the line after a list entry. The entry continues over lines that are indented deeper,
    also after blank lines, and over plain text directly below it (a lazy continuation).
    """
    end = at + 1
    n = at + 1
    while n < len(lines):
        line = lines[n]
        if not line.strip():
            n += 1
            continue
        deeper = len(line) - len(line.lstrip()) > indent
        lazy = n == end and not _begins(line, BlockShape.TEXT) and not is_bare(line)
        if not (deeper or lazy):
            break
        n += 1
        end = n
    return end


TOKENS = 200
SHORT = 8  # tokens: a shorter unit may be joined with a neighbour
JOINED = 30  # tokens that joined units have at most
_MARKS = 64  # number of last blocks at which cutting can resume; one of them begins a piece
_ABOVE = -1  # line number of a heading or lead that lies above the first line of the file
_LEAD = 40  # tokens that a line introducing a list has at most
_OPENING = 120  # characters of an entry's or a table's first line that its later pieces repeat

_SPEAKER = re.compile(
    r"(?:[-*+]\s+)?"
    r"(?:[\[(]?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[APap][Mm])?[\])]?\s+)?"
    r"(?:\*\*(?P<bold>[^*:]{1,40})(?::\*\*|\*\*:)"
    r"|(?P<plain>[^\W\d_][^\s:*]{0,20}(?:\s[^\W\d_][^\s:*]{0,20}){0,2}):)(?:\s|$)"
)


class _Unit(Struct, frozen=True):
    """Lines that are kept together. `body` is the first line that is not a heading; units with the
    same `section` have the same headings above them.
    """

    shape: BlockShape
    first: int
    body: int
    end: int
    section: int
    above: tuple[str, ...]
    day: date | None
    speaker: str = ""


class _Talk(Struct, frozen=True):
    """The speakers in the units of a section so far, the number of these units, and whether the
    section was recognised as a conversation.
    """

    names: Counter[str] = field(default_factory=Counter)
    units: int = 0
    is_one: bool = False


class HeadingStanding(Struct, frozen=True):
    """The state at line `line`, where a piece begins: the headings, the lead and the speakers above
    it in its section. A grown file can be cut from that line on, as long as it is unchanged up to
    the end of line `upto`.
    """

    line: int
    upto: int
    section: int = 0
    headings: tuple[ParagraphBlock, ...] = ()
    lead: str = ""
    talk: _Talk = field(default_factory=_Talk)


def pieces(file: Lines, most: int = TOKENS) -> Iterator[Piece]:
    """Yield the chunks of a markdown file. A unit of more than `most` tokens is split, at line ends
    if possible.
    """
    return iter(cut(file, most=most)[0])


def cut(
    file: Lines, above: HeadingStanding | None = None, *, most: int = TOKENS
) -> tuple[Sequence[Piece], HeadingStanding | None]:
    """Return `pieces`, and a state from which cutting can resume when lines are appended; None if
    there is no such place.

    With `above`, the file holds only the lines from `above.line` on. Return no pieces and None if
    the whole file has to be cut again.
    """
    reader = _Reader(file, above)
    units = reader.units()
    talks: dict[int, _Talk] = {}
    spoken: list[_Unit] = []
    for number, section in groupby(units, _section):
        before = above.talk if above is not None and above.section == number else None
        own, talks[number] = _spoken(file, list(section), before)
        if before is not None and talks[number].is_one != before.is_one:
            return (), None
        spoken += own
    joined = list(_joined(file, spoken))
    found = [piece for unit in joined for piece in _pieces(file, unit, most)]
    if above is None and may_begin_anew(file.lines):
        return found, None
    begins = {unit.first for unit in joined}
    for mark, after in reversed(list(pairwise(reader.marks))):  # the last mark has no end yet
        if mark.line in begins:
            headings = tuple(replace(heading, first=_ABOVE) for heading in mark.headings)
            before = above.talk if above is not None and above.section == mark.section else None
            held = [u.body for u in units if u.section == mark.section and u.first < mark.line]
            talk = _so_far([_name(file.lines[line]) for line in held], before)
            talk = replace(talk, is_one=mark.section in talks and talks[mark.section].is_one)
            standing = HeadingStanding(
                mark.line, after.line, mark.section, headings, mark.lead, talk
            )
            return found, standing
    return found, None


class _Mark(NamedTuple):
    """A line whose block is never joined with the block before it, and the section, headings and
    lead above it.
    """

    line: int
    section: int
    headings: Sequence[ParagraphBlock]
    lead: str


class _Reader:
    """Walks through the blocks of a file and tracks the headings and the lead above each."""

    def __init__(self, file: Lines, above: HeadingStanding | None) -> None:
        self._file = file
        self._headings = list(above.headings) if above else []
        self._section = above.section if above else 0
        self._waiting = -1  # line of a heading or lead that joins the next block; else -1
        # Line number and text of the lead, the line that introduces the entries after it.
        self._lead = (_ABOVE, above.lead) if above and above.lead else None
        self._units: list[_Unit] = []
        self.marks: deque[_Mark] = deque(maxlen=_MARKS)

    def units(self) -> list[_Unit]:
        """Return a unit for each block that is not a heading, including the headings directly above
        it.
        """
        found = list(blocks(self._file.lines))
        for before, block, after in zip([None, *found], found, [*found[1:], None], strict=False):
            self._note(before, block)
            if block.shape is BlockShape.HEADING:
                self._open(block)
            elif block.end - block.first == 1 and is_bare(self._file.lines[block.first]):
                self._attach(block)
            elif self._introduces(block, after):
                self._wait(block.first)
                self._lead = block.first, self._file.whole(block.first, block.end).text.strip()
                self._section += 1
            else:
                self._add(block)
        if self._waiting >= 0:
            self._close(found[-1].end)
        return self._units

    def _note(self, before: ParagraphBlock | None, block: ParagraphBlock) -> None:
        """Record a mark at the block, unless the block is joined with the one before it."""
        if self._waiting >= 0 or is_bare(self._file.lines[block.first]):
            return
        is_text = (
            block.shape is BlockShape.TEXT
            and before is not None
            and before.shape is BlockShape.TEXT
        )
        if (
            is_text and before is not None and before.end == block.first
        ):  # both are in one paragraph
            return
        lead = self._lead[1] if self._lead else ""
        self.marks.append(_Mark(block.first, self._section, self._headings, lead))

    def _open(self, heading: ParagraphBlock) -> None:
        last = self._headings[-1] if self._headings else None
        if self._waiting >= 0 and last and last.level >= heading.level:
            self._close(heading.first)  # the heading before has no text below it
        self._headings = [*(h for h in self._headings if h.level < heading.level), heading]
        self._lead = None
        self._section += 1
        self._wait(heading.first)

    def _wait(self, line: int) -> None:
        self._waiting = line if self._waiting < 0 else self._waiting

    def _attach(self, block: ParagraphBlock) -> None:
        """Add a horizontal rule to the unit before it, or else to the block that follows."""
        if self._units and self._waiting < 0:
            self._units[-1] = replace(self._units[-1], end=block.end)
        else:
            self._wait(block.first)

    def _introduces(self, block: ParagraphBlock, after: ParagraphBlock | None) -> bool:
        text = self._file.whole(block.first, block.end).text
        return (
            block.shape is BlockShape.TEXT
            and after is not None
            and after.shape is BlockShape.ENTRY
            and text.rstrip(" *_").endswith(":")
            and tokens_in(text) <= _LEAD
        )

    def _add(self, block: ParagraphBlock) -> None:
        if block.shape is not BlockShape.ENTRY and self._lead is not None:
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
            _Unit(
                BlockShape.HEADING,
                first,
                first,
                end,
                self._section,
                self._above(first),
                self._day(),
            )
        )

    def _above(self, first: int) -> tuple[str, ...]:
        """Return the headings and the lead above a line, without headings that are only a date."""
        titles = [without_dates(h.title) for h in self._headings if h.first < first]
        if self._lead is not None and self._lead[0] < first:
            titles.append(self._lead[1].rstrip(":"))
        return tuple(title for title in titles if title)

    def _day(self) -> date | None:
        days = (date_in(heading.title) for heading in reversed(self._headings))
        return next((day for day in days if day), None)


def _section(unit: _Unit) -> int:
    return unit.section


def _spoken(
    file: Lines, units: Sequence[_Unit], before: _Talk | None
) -> tuple[Sequence[_Unit], _Talk]:
    """Set the speakers of the units if their section is a conversation: at least half of its units
    begin with a name, and at least one name recurs. `before` counts the section's earlier units.
    """
    names = [_name(file.lines[unit.body]) for unit in units]
    talk = _so_far(names, before)
    if talk.is_one:
        pairs = zip(units, names, strict=True)
        units = [replace(unit, speaker=name) if name else unit for unit, name in pairs]
    return units, talk


def _so_far(names: Sequence[str], before: _Talk | None) -> _Talk:
    """Add units with these names ("" for none) to the count of the units before them."""
    counts, size = Counter(filter(None, names)), len(names)
    if before is not None:
        counts.update(before.names)
        size += before.units
    is_one = 2 * counts.total() >= size and max(counts.values(), default=0) > 1
    return _Talk(counts, size, is_one)


def _name(line: str) -> str:
    found = _SPEAKER.match(line)
    return (found["bold"] or found["plain"]).strip() if found else ""


def _joined(file: Lines, units: Sequence[_Unit]) -> Iterator[_Unit]:
    """Yield the units; short ones are joined with neighbours of the same shape and section."""
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
        found = list(pack_lines(file, unit.first, unit.end, min(most, cost // count + most // 8)))
    above = unit.above
    for number, piece in enumerate(found):
        if number == 1 and unit.shape in {BlockShape.ENTRY, BlockShape.TABLE}:
            above = (*above, file.lines[unit.body].strip()[:_OPENING])
        yield replace(piece, speaker=unit.speaker, context=" / ".join(above), day=unit.day)
