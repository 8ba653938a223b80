"""Parses HEARTBEAT.md as a checklist. Pure.

Work is prose, list entries and open boxes. Not work are blank lines, headings, HTML comments,
rules, code-fence marks, ticked boxes, and boxes or bullets without words.

A dated entry is work only when its time has come. It is an entry with `(due: 2026-12-01 09:00)` or
`(every: 2h)`, or a `- name:` entry with an `interval:` in a `tasks:` block.

Lines indented deeper than an entry belong to it, also after blank lines. Boxes and dated entries
are the exception: they are entries of their own at any depth, because each is ticked or due by
itself. But a box without a time below a dated entry belongs to that entry and so has its time. A
bullet that has only entries below it is their title, not work. Fenced code is not searched for
entries: it belongs to the entry around it. A fence that is never closed is ordinary text.

An entry whose date or duration cannot be read, or whose duration is under a minute, counts as
undated: the model sees it in every beat, and `Checklist.mistakes` names it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from agentd.core.beat import ItemState
from agentd.core.times import format_duration, parse_duration, read_instant

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NOISE = re.compile(r"#{1,6}(\s.*)?|(`{3,}|~{3,}).*|([-*_])(\s*\3){2,}|[-*+]|\d+[.)]")
_ENTRY = re.compile(r"(?:[-*+]|\d+[.)])\s+(?:\[(?P<box>[ xX]?)\](?=\s|$)\s*)?(?P<text>.*)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*\Z)|~{3,})")
_WHEN = re.compile(r"\(\s*+(due|every)\s*+:([^()]++)\)", re.IGNORECASE)
_FIELD = re.compile(r"(?:[-*+]\s+)?(name|interval|every|due|prompt)\s*:\s*(.*)", re.IGNORECASE)

LOOK = "look"  # the tool by which a beat reports that an entry needs tools of other programs

_LEAST = timedelta(minutes=1)  # no beat comes more often
_FORMS = {"due": '"2026-12-01" or "2026-12-01 09:00"', "every": '"30m", "2h" or "7d"'}


class Item(Struct, frozen=True):
    """The time of a dated entry. `hash` identifies its normalised text, date included: an entry
    with another date is another item.
    """

    hash: str
    text: str
    due: datetime | None = None
    every: timedelta | None = None

    def next_time(self, state: ItemState | None, now: datetime) -> datetime | None:
        """Return when the item is (or was) next to be done; None once it is done for good."""
        done = state.last_done if state else None
        if done is None:
            return self.due or now
        if self.every is None:
            return None
        return now if done > now else done + self.every  # else a clock set back would silence it

    def is_due(self, state: ItemState | None, now: datetime) -> bool:
        """Whether the item is to be done now. A recurring item may come a tenth of its interval
        early, so that the duration of a beat does not delay it past its slot.
        """
        at = self.next_time(state, now)
        early = self.every / 10 if self.every and state and state.last_done else timedelta()
        return at is not None and at - early <= now


class ItemPart(Struct, frozen=True):
    """A group of lines of the file: a dated entry (`item`), or work for every beat (`is_open`), or
    neither.
    """

    lines: tuple[str, ...]
    is_open: bool = False
    item: Item | None = None
    is_listed: bool = False  # an entry of a list, not a line of prose
    is_off: bool = False  # ticked
    mistakes: tuple[str, ...] = ()  # error messages for times that cannot be read
    depth: int = -1  # columns by which an entry is indented; -1 if the part is no entry


class ChecklistEntry(Struct, frozen=True):
    """Something to check: a list entry with all that belongs to it, or a paragraph. `hash`
    identifies its normalised text. An entry with an `item` is work when that is due, any other in
    every beat.
    """

    hash: str
    text: str
    item: Item | None = None


def item_hashes(*entries: ChecklistEntry) -> tuple[str, ...]:
    """Return the item hashes of the dated ones among these entries."""
    return tuple(entry.item.hash for entry in entries if entry.item is not None)


class Checklist(Struct, frozen=True, dict=True):
    """A parsed HEARTBEAT.md."""

    parts: tuple[ItemPart, ...] = ()

    @cached_property
    def entries(self) -> tuple[ChecklistEntry, ...]:
        """All entries, due now or later, without duplicates."""
        return tuple({e.hash: e for e, _ in self._sections if e is not None}.values())

    def work(self, items: Iterable[Item]) -> tuple[ChecklistEntry, ...]:
        """Return the entries to check now: all undated ones, and the dated ones of these items."""
        wanted = {item.hash for item in items}
        return tuple(e for e in self.entries if e.item is None or e.hash in wanted)

    def find(self, words: str) -> ChecklistEntry | None:
        """Return the one entry with this text, else the one entry that contains it; None if there
        is none or more than one. Case and spacing are ignored.
        """
        wanted = _normal(words)
        found = [e for e in self.entries if _normal(e.text) == wanted] or [
            e for e in self.entries if wanted and wanted in _normal(e.text)
        ]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _sections(self) -> tuple[tuple[ChecklistEntry | None, tuple[ItemPart, ...]], ...]:
        """The parts, each with its entry or None; all lines of a paragraph form one section."""
        sections: list[tuple[ChecklistEntry | None, tuple[ItemPart, ...]]] = []
        for is_prose, group in groupby(
            self.parts, lambda part: part.is_open and not part.is_listed
        ):
            for parts in [tuple(group)] if is_prose else [(part,) for part in group]:
                head = parts[0]
                entry = None
                if head.item is not None:
                    entry = ChecklistEntry(head.item.hash, head.item.text, head.item)
                elif head.is_open:
                    text = "\n".join(line.strip() for part in parts for line in part.lines)
                    entry = ChecklistEntry(item_hash(text), text)
                sections.append((entry, parts))
        return tuple(sections)

    @cached_property
    def has_open(self) -> bool:
        """Whether some entry is work in every beat."""
        return any(part.is_open for part in self.parts)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items of the dated entries, without duplicates."""
        return tuple({part.item.hash: part.item for part in self.parts if part.item}.values())

    @cached_property
    def mistakes(self) -> tuple[str, ...]:
        """A message for each time that cannot be read, with its line and the correct form."""
        return tuple(mistake for part in self.parts for mistake in part.mistakes)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, now or later."""
        return not self.has_open and not self.items

    def due(self, states: Mapping[str, ItemState], now: datetime) -> tuple[Item, ...]:
        """Return the items that are due."""
        return tuple(item for item in self.items if item.is_due(states.get(item.hash), now))

    def next_time(self, states: Mapping[str, ItemState], now: datetime) -> datetime | None:
        """Return the next time after `now` at which an item comes due; None if there is none."""
        times = (item.next_time(states.get(item.hash), now) for item in self.items)
        return min((at for at in times if at is not None and at > now), default=None)

    def text(self, items: Iterable[Item], without: Collection[str] = ()) -> str:
        """Return the file without comments, ticked boxes, dated entries other than `items`, and
        entries whose hashes are in `without`.
        """
        wanted = {item.hash for item in items}
        lines: list[str] = []
        around: list[tuple[int, int, bool]] = []  # depth, columns moved, whether it is shown
        for entry, parts in self._sections:
            for part in parts:
                is_shown = (entry is None or entry.hash not in without) and (
                    not part.is_off and (part.item is None or part.item.hash in wanted)
                )
                by = _shift_left(part, around)
                if part.depth >= 0:
                    around.append((part.depth, by, is_shown))
                if is_shown:
                    lines += (_outdent(line, by) for line in part.lines)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _shift_left(part: ItemPart, around: list[tuple[int, int, bool]]) -> int:
    """Return by how many columns an entry moves to the left. If the entry around it is hidden, it
    moves to that one's place, because it would otherwise look like a child of another entry.
    Removes from `around` the entries that do not enclose this one.
    """
    if not part.lines[0].strip():
        return 0
    while around and around[-1][0] >= part.depth:
        around.pop()
    if not around:
        return 0
    depth, by, is_shown = around[-1]
    return by if is_shown else by + part.depth - depth


def _outdent(line: str, by: int) -> str:
    if not line.strip():
        return ""
    line = line.expandtabs(4) if by else line
    return line[min(by, _indent(line)) :]


def parse(text: str, zone: ZoneInfo) -> Checklist:
    """Parse the text of a HEARTBEAT.md; dates without an offset are in `zone`."""
    lines = _COMMENT.sub("", text.removeprefix("\ufeff")).splitlines()
    return Checklist(tuple(_part(group, zone) for group in _groups(lines)))


def item_hash(text: str) -> str:
    """Return the hash that identifies an entry with this text."""
    return hashlib.sha256(_normal(text).encode()).hexdigest()[:16]


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class _LineGroup(Struct):
    """A line of the file; for an entry, with the lines that belong to it."""

    lines: list[str]
    depth: int
    entry: re.Match[str] | None = None
    fields: dict[str, str] | None = None  # fields of an entry in a `tasks:` block
    holds_entries: bool = False
    written: dict[str, str] = field(default_factory=dict)  # `due` and `every` of the first line

    def __post_init__(self) -> None:
        # Computed once, because each nested line reads `times`.
        found = _WHEN.findall(self.lines[0])
        self.written = {kind.lower(): value.strip() for kind, value in found}
        self._read(self.lines)

    def add(self, lines: Sequence[str]) -> None:
        """Add lines that belong to the entry."""
        self.lines += lines
        self._read(lines)

    @property
    def is_ticked(self) -> bool:
        return self.entry is not None and bool(self.entry["box"]) and self.entry["box"] in "xX"

    @property
    def times(self) -> dict[str, str]:
        """The entry's `due` and `every` as written: in its line, or as fields of a `- name:`
        entry.
        """
        if self.written or not self.fields or "name" not in self.fields:
            return self.written
        every = self.fields.get("interval") or self.fields.get("every")
        given = {"due": self.fields.get("due"), "every": every}
        return {kind: value for kind, value in given.items() if value}

    def takes(self, line: str, entry: re.Match[str] | None) -> bool:
        """Whether a deeper indented line belongs to this entry and is not an entry of its own."""
        if entry is None or _WHEN.search(line):
            return entry is None
        return entry["box"] is None or (not self.is_ticked and bool(self.times))

    def _read(self, lines: Sequence[str]) -> None:
        if self.fields is not None:
            matches = (_FIELD.fullmatch(line.strip()) for line in lines)
            self.fields |= {m[1].lower(): m[2].strip().strip("\"'") for m in matches if m}


def _groups(lines: Sequence[str]) -> list[_LineGroup]:
    """Group lines into entries with all that belongs to them; any other line or code block is a
    group.
    """
    groups: list[_LineGroup] = []
    around: list[_LineGroup] = []  # the entries that may enclose the next line, outermost first
    in_tasks = False
    for block in _blocks(lines):
        line, depth = block[0].strip(), _indent(block[0])
        if not line:
            groups.append(_LineGroup(block, depth))
            continue
        while around and around[-1].depth >= depth:
            around.pop()
        entry = _ENTRY.match(line)
        if around and around[-1].takes(line, entry):
            around[-1].add(block)
            continue
        if around:
            around[-1].holds_entries = True
        elif line.lower() == "tasks:":
            in_tasks = True
        elif line.startswith("#") and _NOISE.fullmatch(line):
            in_tasks = False
        groups.append(_LineGroup(block, depth, entry, {} if in_tasks and entry else None))
        if entry is not None:
            around.append(groups[-1])
    return groups


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield each fenced code block as one block, and every other line as a block."""
    unclosed: dict[str, int] = {}  # by fence character: the shortest unclosed fence
    at = 0
    while at < len(lines):
        end = at
        fence = _FENCE.match(lines[at])
        if fence and len(fence[1]) < unclosed.get(fence[1][0], len(fence[1]) + 1):
            found = (n for n in range(at + 1, len(lines)) if _closes(lines[n], fence[1]))
            end = next(found, -1)
            if end < 0:
                unclosed[fence[1][0]], end = len(fence[1]), at
        yield list(lines[at : end + 1])
        at = end + 1


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return mark.startswith(fence) and not mark.strip(fence[0])


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _part(group: _LineGroup, zone: ZoneInfo) -> ItemPart:
    lines, head, entry = tuple(group.lines), group.lines[0].strip(), group.entry
    if not head or _NOISE.fullmatch(head) or head.lower() == "tasks:":
        return ItemPart(lines)
    if entry is None:
        return ItemPart(lines, is_open=True)
    if group.is_ticked:
        return ItemPart(lines, is_off=True, depth=group.depth)
    times = group.times
    is_title = group.holds_entries and entry["box"] is None and not times
    if len(lines) == 1 and (is_title or not entry["text"]):
        return ItemPart(lines, depth=group.depth)
    due, every = _date(times.get("due", ""), zone), _duration(times.get("every", ""))
    read = {"due": due, "every": every}
    mistakes = tuple(
        f"{head!r}: {kind} {value!r} {_fault(kind, value)}; write it like {_FORMS[kind]}"
        for kind, value in times.items()
        if read[kind] is None
    )
    if due is None and every is None:
        return ItemPart(lines, is_open=True, is_listed=True, mistakes=mistakes, depth=group.depth)
    text = "\n".join(line.strip() for line in lines)
    item = Item(item_hash(text), text, due, every)
    return ItemPart(lines, item=item, mistakes=mistakes, depth=group.depth)


def _date(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        return read_instant(text, zone)
    except ValueError:
        return None


def _duration(text: str) -> timedelta | None:
    try:
        every = parse_duration(text)
    except ValueError:
        return None
    return every if every >= _LEAST else None


def _fault(kind: str, text: str) -> str:
    """Return why the time is invalid."""
    if kind == "every":
        with suppress(ValueError):
            parse_duration(text)
            return f'is too short: "{format_duration(_LEAST)}" is the least'
    return "cannot be read"
