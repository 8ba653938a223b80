"""The page `memory/facts.md`: lines that are facts, and other text of the user, which is kept.
Pure.

A bullet is a fact. Above the special headings are the current facts, below `Proposed` those that
wait for the user's answer, below `Earlier` past ones, and below `Forgotten` only tombstones. A
bullet without a comment is a new fact wherever it is. Lines that nobody touched keep every byte; an
unreadable line stays in place and is reported as trouble.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Final

from agentd.core.fact import Fact, FactStatus
from agentd.memory.facts.page_entry import (
    BadLine,
    PageEntry,
    bullet,
    read_bullet,
    read_tombstone,
    tombstone,
)

_TITLE = "# Facts"
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_BULLET = re.compile(r"[-*+]\s+(.*)", re.DOTALL)
_FACT = re.compile(r"<!--\s*+fact\s")
_FORGOTTEN = re.compile(r"<!--\s*+forgotten\s(.*?)-->\s*")
_OURS = re.compile(r"<!--\s*(?:fact|forgotten)\b|\bid=[a-z0-9]{4,8}\b|\bcategory=\w+ source=\w+")
_NAMED = re.compile(r"\bid=\"?([A-Za-z0-9_-]{1,32})")
_NOT_UTF_8 = re.compile("[\ud800-\udfff]")
_GARBLED = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufffd]")
_GOES_ON = re.compile(r"[ \t]+(?![-*+]\s|\d+[.)]\s)\S")
_WRAPPED = re.compile(r"(?![-*+>#<=|~`]|\d+[.)]\s)\S")  # continues a paragraph in Markdown
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_ITEM = re.compile(r"\s+[-*+]\s+\S|\s*\d{1,9}[.)]\s+\S")
_ANNOTATED = re.compile(r"<!--\s*(?:fact|forgotten)\s")
_AS_A_FACT = "begin it with `- ` at the beginning of the line to make it a fact"


class RepeatedId(BadLine):
    """A line has the id of an earlier line. `entry` is its content."""

    def __init__(self, entry: PageEntry) -> None:
        super().__init__(
            f"the id {entry.id} stands here once more",
            "delete the line, or its comment to make it a new fact",
        )
        self.entry = entry


class PagePart(Enum):
    """A part of the page, determined by the heading above."""

    NOW = auto()
    PROPOSED = auto()
    EARLIER = auto()
    FORGOTTEN = auto()


_TITLES: Final = {
    PagePart.PROPOSED: "## Proposed",
    PagePart.EARLIER: "## Earlier",
    PagePart.FORGOTTEN: "## Forgotten",
}
_PARTS: Final = {title.removeprefix("## ").casefold(): part for part, title in _TITLES.items()}


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of the page, without its end; a bullet includes its continuation lines. At most one of
    `entry`, `buried` and `trouble` is set; none for other text.
    """

    raw: str
    part: PagePart = PagePart.NOW
    entry: PageEntry | None = None
    buried: tuple[str, datetime] | None = None
    trouble: BadLine | None = None
    is_passed_over: bool = False  # a list item that is no fact, though it may be meant as one

    @property
    def id(self) -> str:
        """The id of the fact or tombstone in this line; "" if there is none."""
        if self.buried is not None:
            return self.buried[0]
        return self.entry.id if self.entry else ""


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """An unreadable line. `line` counts from 1."""

    line: int
    why: str
    cure: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line with its position: `index` among the page's lines, `number` in the file, from 1."""

    index: int
    number: int
    line: PageLine


@dataclass(frozen=True, slots=True)
class _Layout:
    """The index of a page: lines of facts by id, and where runs of lines of each part begin. After
    a change near the end only that part is recomputed.
    """

    at: Mapping[str, int] = field(default_factory=dict)
    runs: tuple[tuple[int, PagePart], ...] = ()

    def renewed(self, ids: Collection[str], lines: Sequence[PageLine], first: int) -> _Layout:
        """Return the layout for lines that changed from `first` on; no fact of `ids` is before
        that.
        """
        at = dict(self.at)
        for fact_id in ids:
            at.pop(fact_id, None)
        runs = [run for run in self.runs if run[0] < first]
        for index in range(first, len(lines)):
            line = lines[index]
            if line.entry is not None and line.entry.id:
                at[line.entry.id] = index
            if not runs or runs[-1][1] is not line.part:
                runs.append((index, line.part))
        return _Layout(at, tuple(runs))

    def end(self, part: PagePart, size: int) -> int | None:
        """Return the index after the last of `size` lines of the part; None if the page lacks the
        part. Current facts end before the first heading.
        """
        ends = [*(start for start, _ in self.runs[1:]), size]
        found = [end for (_, own), end in zip(self.runs, ends, strict=False) if own is part]
        if part is PagePart.NOW:
            return ends[0] if self.runs and self.runs[0][1] is part else 0
        return found[-1] if found else None

    def before(self, part: PagePart, size: int) -> int:
        """Return the index among `size` lines at which a missing part is to be inserted."""
        order = list(PagePart)
        behind = order[order.index(part) + 1 :]
        return next((start for start, own in self.runs if own in behind), size)

    def has(self, part: PagePart) -> bool:
        """Whether any line belongs to the part."""
        return any(own is part for _, own in self.runs)


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page of facts."""

    lines: tuple[PageLine, ...] = ()
    layout: _Layout | None = field(default=None, compare=False, repr=False)

    def render(self) -> str:
        """Return the text of the page."""
        return "\n".join([line.raw for line in self.lines])

    def placed(self) -> Iterator[PlacedLine]:
        """Yield every line with its positions."""
        number = 1
        for index, line in enumerate(self.lines):
            yield PlacedLine(index, number, line)
            number += 1 + line.raw.count("\n")

    def entries(self) -> Mapping[str, PageEntry]:
        """Return the entries by fact id."""
        return {line.entry.id: line.entry for line in self.lines if line.entry and line.entry.id}

    def tombstones(self) -> Mapping[str, datetime]:
        """Return the times of forgetting by fact id."""
        return dict(line.buried for line in self.lines if line.buried)

    def troubles(self) -> tuple[UnreadableLine, ...]:
        """Return the unreadable lines."""
        return tuple(
            UnreadableLine(place.number, str(trouble), trouble.cure)
            for place in self.placed()
            if (trouble := place.line.trouble) is not None
        )

    def passed_over(self) -> tuple[UnreadableLine, ...]:
        """Return the nested and numbered list items, which are no facts."""
        why = "an item that is numbered or indented is no fact"
        return tuple(
            UnreadableLine(place.number, why, _AS_A_FACT)
            for place in self.placed()
            if place.line.is_passed_over
        )

    def damaged(self) -> frozenset[str]:
        """Return the ids that unreadable lines still contain."""
        raws = [line.raw for line in self.lines if line.trouble is not None]
        return frozenset(found for raw in raws for found in _NAMED.findall(raw))

    def settled(self, fits: Callable[[PlacedLine], int]) -> Page:
        """Resolve lines with the same id: the line for which `fits` returns most stands for the
        fact, the first of several; the others become trouble.
        """
        if not any(isinstance(line.trouble, RepeatedId) for line in self.lines):
            return self
        layout = self.layout or _Layout().renewed((), self.lines, 0)
        at, lines = dict(layout.at), list(self.lines)
        for place in self.placed():
            again = place.line.trouble
            if not isinstance(again, RepeatedId) or (first := at.get(again.entry.id)) is None:
                continue
            taken = lines[first]
            here = replace(place.line, entry=again.entry, trouble=None)
            if taken.entry and fits(PlacedLine(first, 0, taken)) < fits(replace(place, line=here)):
                lines[first] = replace(taken, entry=None, trouble=RepeatedId(taken.entry))
                lines[place.index] = here
                at[again.entry.id] = place.index
        return Page(tuple(lines), replace(layout, at=at))

    def edited(
        self,
        facts: Sequence[Fact] = (),
        *,
        adopted: Mapping[int, Fact] | None = None,
        cut: Collection[int] = (),
        buried: Mapping[str, datetime] | None = None,
        dropped: Collection[str] = (),
    ) -> Page:
        """Return the page with these facts, each in the part for its status: in its line, or at the
        end of the part. `adopted` assigns facts to lines by index, `cut` deletes lines by index,
        `dropped` by id; `buried` replaces facts by tombstones.
        """
        wanted = {fact.id: fact for fact in facts}
        gone = {*dropped, *(buried or {})}
        layout = self.layout or _Layout().renewed((), self.lines, 0)
        named = [layout.at[i] for i in wanted.keys() | gone if i in layout.at]
        touched = sorted({*named, *(adopted or {}), *cut})
        lines: list[PageLine] = []
        kept = 0  # lines copied so far; unchanged runs are copied at once
        for index in touched:
            lines += self.lines[kept:index]
            kept = index + 1
            line = self.lines[index]
            if index in cut or (line.entry and line.id in gone):
                continue
            fact = (adopted or {}).get(index) or wanted.get(line.id)
            if line.entry is None or fact is None:
                lines.append(line)
            elif _part(fact) is line.part:
                lines.append(_write_line(line, fact))
                wanted.pop(fact.id, None)
            else:
                wanted.setdefault(fact.id, fact)
        lines += self.lines[kept:]
        first = touched[0] if touched else len(lines)
        layout = layout.renewed([self.lines[at].id for at in touched], lines, first)
        marked = {line.id for line in self.lines if line.buried} if buried else frozenset()
        fresh = [_fresh(fact) for fact in wanted.values() if fact.id not in gone]
        fresh += [_grave(i, at) for i, at in (buried or {}).items() if i not in marked]
        for part in PagePart:
            if added := [line for line in fresh if line.part is part]:
                layout = _add_lines(lines, layout, part, added)
        return Page(tuple(lines), layout)


def parse(text: str) -> Page:
    """Parse the page; never fails. A second line with the same id is trouble (see
    `Page.settled`).
    """
    lines: list[PageLine] = []
    part = PagePart.NOW
    seen: set[str] = set()
    raws = tuple(_join_bullets(text.split("\n")))
    code = _code(raws)
    for index, raw in enumerate(raws):
        if index not in code and (heading := _HEADING.match(raw)):
            part = _PARTS.get(_title(heading[1]), PagePart.NOW)
        line = _line(raw, part, is_quoted=index in code)
        if line.id and line.id in seen:
            entry = line.entry or PageEntry("", line.id)
            line = PageLine(raw, part, trouble=RepeatedId(entry))
        seen.add(line.id)
        lines.append(line)
    return Page(tuple(lines), _Layout().renewed((), lines, 0))


def _join_bullets(raws: Sequence[str]) -> Iterator[str]:
    """Yield the lines, each bullet together with its continuation lines."""
    held: str | None = None
    for raw in raws:
        if held is not None and _goes_on(raw):
            held = f"{held}\n{raw}"
        else:
            if held is not None:
                yield held
            held = raw if _BULLET.match(raw) else None
            if held is None:
                yield raw
        if held is not None and held.rstrip().endswith("-->"):
            yield held
            held = None
    if held is not None:
        yield held


def _goes_on(raw: str) -> bool:
    """Whether a line continues the bullet above it."""
    if _GOES_ON.match(raw):
        return True
    return bool(_WRAPPED.match(raw)) and not (_NOT_UTF_8.search(raw) or _OURS.search(raw))


def _code(raws: Sequence[str]) -> frozenset[int]:
    """Return the indexes of lines in code blocks, where headings and hand-written facts do not
    count. A fence that does not end, or is followed by a line of agentd's, begins no block.
    """
    found: set[int] = set()
    start: int | None = None
    for index, raw in enumerate(raws):
        if _ANNOTATED.search(raw):
            start = None
        elif _FENCE.match(raw):
            if start is not None:
                found.update(range(start, index + 1))
            start = index if start is None else None
    return frozenset(found)


def _line(raw: str, part: PagePart, *, is_quoted: bool) -> PageLine:
    try:
        if _NOT_UTF_8.search(raw):
            raise BadLine("it is not UTF-8", "save the file as UTF-8, or correct the line")
        if _GARBLED.search(raw):
            raise BadLine("it has characters that no text has: it is damaged")
        if found := _FORGOTTEN.fullmatch(raw):
            return PageLine(raw, part, buried=read_tombstone(found[1].rstrip()))
        body = _BULLET.fullmatch(raw)
        if body and (told := _split_annotation(body[1].rstrip())):
            return PageLine(raw, part, read_bullet(*told))
        if _OURS.search(raw):
            raise BadLine("it has a part of a comment of agentd's")
        if not body or is_quoted or not body[1].strip():
            return PageLine(raw, part, is_passed_over=not is_quoted and bool(_ITEM.match(raw)))
        return PageLine(raw, part, read_bullet(body[1], None))
    except BadLine as why:
        return PageLine(raw, part, trouble=why)


def _split_annotation(said: str) -> tuple[str, str] | None:
    """Return the words and the annotation after them; None if there is none."""
    found = _FACT.search(said) if said.endswith("-->") else None
    return (said[: found.start()].rstrip(), said[found.end() : -3].rstrip()) if found else None


def _title(words: str) -> str:
    return words.rstrip().rstrip("#").rstrip().casefold()


def _with_parts(lines: Sequence[PageLine]) -> Iterator[PageLine]:
    """Yield the lines, each with the part that it is in now."""
    part = PagePart.NOW
    code = _code([line.raw for line in lines])
    for index, line in enumerate(lines):
        if index not in code and (heading := _HEADING.match(line.raw)):
            part = _PARTS.get(_title(heading[1]), PagePart.NOW)
        yield line if line.part is part else replace(line, part=part)


def _part(fact: Fact) -> PagePart:
    if fact.status is FactStatus.PROPOSED:
        return PagePart.PROPOSED
    return PagePart.NOW if fact.is_active else PagePart.EARLIER


def _write_line(line: PageLine, fact: Fact) -> PageLine:
    """Return the line, changed only if it states something else."""
    entry = line.entry
    if entry is not None and entry.is_complete and entry.fact(entry.id, fact.noted_at) == fact:
        return line
    end = "\r" if line.raw.endswith("\r") else ""
    fresh = _fresh(fact)
    return PageLine(fresh.raw + end, line.part, fresh.entry)


def _fresh(fact: Fact) -> PageLine:
    raw = bullet(fact)
    return _line(raw, _part(fact), is_quoted=False)


def _grave(fact_id: str, at: datetime) -> PageLine:
    return PageLine(tombstone(fact_id, at), PagePart.FORGOTTEN, buried=(fact_id, at))


def _add_lines(
    lines: list[PageLine], layout: _Layout, part: PagePart, added: Sequence[PageLine]
) -> _Layout:
    """Insert lines at the end of their part, which is created if missing; return the new layout."""
    if not any(line.raw.strip() for line in lines):
        lines[:] = [PageLine(_TITLE), PageLine("")]
        layout = _Layout().renewed((), lines, 0)
    first = len(lines)
    is_new = not layout.has(part)
    end = layout.end(part, len(lines))
    if end is None:
        last = _after_text(lines, layout.before(part, len(lines)))
        head = [PageLine("", lines[last - 1].part), PageLine(_TITLES[part], part)]
        lines[last:last] = head
        end, first = last + len(head), last
    end = _after_text(lines, end)
    before = lines[end - 1] if end else PageLine("")
    is_list = before.entry is not None or before.buried is not None
    gap = [] if is_list or not before.raw.strip() else [PageLine("", part)]
    lines[end:end] = [*gap, *added]
    if lines[-1].raw.strip():
        lines.append(PageLine("", lines[-1].part))
    first = min(first, end)
    if is_new:  # lines after the new heading belong to the part now
        lines[:] = _with_parts(lines)
        return _Layout().renewed((), lines, 0)
    return layout.renewed((), lines, first)


def _after_text(lines: Sequence[PageLine], end: int) -> int:
    """Return the index after the last non-blank line before `end`."""
    while end and not lines[end - 1].raw.strip():
        end -= 1
    return end
