"""HEARTBEAT.md as a checklist; pure.

What counts as work: prose, list entries, open boxes. What does not: blank lines, headings, HTML
comments, rules, code-fence marks, ticked boxes and boxes or bullets without words. An entry with
`(due: 2026-12-01 09:00)` or `(every: 2h)`, or a `- name:` entry of a `tasks:` block with an
`interval:`, is work only when its time has come. Lines indented deeper than an entry belong to it.
A date or duration that cannot be read, or a duration under a minute, makes an entry without one: the
model sees it every time, and `Checklist.mistakes` names it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import groupby
from zoneinfo import ZoneInfo

from agentd.core.beat import ItemState
from agentd.core.durations import format_duration, parse_duration

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NOISE = re.compile(r"#{1,6}(\s.*)?|(`{3,}|~{3,}).*|([-*_])(\s*\3){2,}|[-*+]|\d+[.)]")
_ENTRY = re.compile(r"(?:[-*+]|\d+[.)])\s+(?:\[(?P<box>[ xX]?)\](?=\s|$)\s*)?(?P<text>.*)")
_WHEN = re.compile(r"\(\s*+(due|every)\s*+:([^()]++)\)", re.IGNORECASE)
_FIELD = re.compile(r"(?:[-*+]\s+)?(name|interval|every|due|prompt)\s*:\s*(.*)", re.IGNORECASE)

LOOK = "look"  # the tool by which a beat says that an entry needs tools of others

_LEAST = timedelta(minutes=1)  # no beat comes more often
_FORMS = {"due": '"2026-12-01" or "2026-12-01 09:00"', "every": '"30m", "2h" or "7d"'}


@dataclass(frozen=True, slots=True)
class Item:
    """A dated entry. `hash` names its normalised text, date included: another date, another item."""

    hash: str
    text: str
    due: datetime | None = None
    every: timedelta | None = None

    def next_time(self, state: ItemState | None, now: datetime) -> datetime | None:
        """When it is, or was, to be done next; None once it is done for good."""
        done = state.last_done if state else None
        if done is None:
            return self.due or now
        if self.every is None:
            return None
        return now if done > now else done + self.every  # a clock set back must not silence it

    def is_due(self, state: ItemState | None, now: datetime) -> bool:
        """Whether it is to be done now. What recurs may come a tenth early, so that the time a beat
        takes does not push it behind the slot it belongs to.
        """
        at = self.next_time(state, now)
        early = self.every / 10 if self.every and state and state.last_done else timedelta()
        return at is not None and at - early <= now


@dataclass(frozen=True, slots=True)
class ItemPart:
    """Some lines of the file: a dated entry, or work for every beat (`is_open`), or neither."""

    lines: tuple[str, ...]
    is_open: bool = False
    item: Item | None = None
    is_listed: bool = False  # an entry of a list, not a line of prose
    is_off: bool = False  # ticked
    mistakes: tuple[str, ...] = ()  # its times that cannot be read


@dataclass(frozen=True, slots=True)
class ChecklistEntry:
    """Something to be looked at: an entry of a list with what belongs to it, or a paragraph. `hash` names
    its normalised text. One with an `item` is work when that is due, any other at every beat.
    """

    hash: str
    text: str
    item: Item | None = None


def item_hashes(*entries: ChecklistEntry) -> tuple[str, ...]:
    """The hashes of the dated ones' items."""
    return tuple(entry.item.hash for entry in entries if entry.item is not None)


@dataclass(frozen=True)
class Checklist:
    """The file, taken apart."""

    parts: tuple[ItemPart, ...] = ()

    @cached_property
    def entries(self) -> tuple[ChecklistEntry, ...]:
        """What is to be looked at, now or later, each once."""
        return tuple({e.hash: e for e, _ in self._sections if e is not None}.values())

    def work(self, items: Iterable[Item]) -> tuple[ChecklistEntry, ...]:
        """What is to be looked at now, where of the dated entries these are."""
        wanted = {item.hash for item in items}
        return tuple(e for e in self.entries if e.item is None or e.hash in wanted)

    def find(self, words: str) -> ChecklistEntry | None:
        """The one entry with this text, or the one that these words are part of; None where there is
        none, or more than one.
        """
        wanted = _normal(words)
        found = [e for e in self.entries if _normal(e.text) == wanted] or [
            e for e in self.entries if wanted and wanted in _normal(e.text)
        ]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _sections(self) -> tuple[tuple[ChecklistEntry | None, tuple[ItemPart, ...]], ...]:
        """The parts, with the entry that they are; the lines of a paragraph are one."""
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
        """Whether something is to be looked at in every beat."""
        return any(part.is_open for part in self.parts)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The dated entries, each once."""
        return tuple({part.item.hash: part.item for part in self.parts if part.item}.values())

    @cached_property
    def mistakes(self) -> tuple[str, ...]:
        """Each time that cannot be read, with its line and the form that can."""
        return tuple(mistake for part in self.parts for mistake in part.mistakes)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, now or later."""
        return not self.has_open and not self.items

    def due(self, states: Mapping[str, ItemState], now: datetime) -> tuple[Item, ...]:
        """The dated entries whose time has come."""
        return tuple(item for item in self.items if item.is_due(states.get(item.hash), now))

    def next_time(self, states: Mapping[str, ItemState], now: datetime) -> datetime | None:
        """The next time after `now` at which a dated entry comes due."""
        times = (item.next_time(states.get(item.hash), now) for item in self.items)
        return min((at for at in times if at is not None and at > now), default=None)

    def text(self, items: Iterable[Item], without: Collection[str] = ()) -> str:
        """The file without comments, ticked boxes, all dated entries but `items`, and the entries whose
        hashes are in `without`.
        """
        wanted = {item.hash for item in items}
        lines = [
            line
            for entry, parts in self._sections
            if entry is None or entry.hash not in without
            for part in parts
            if not part.is_off and (part.item is None or part.item.hash in wanted)
            for line in part.lines
        ]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def parse(text: str, zone: ZoneInfo) -> Checklist:
    """The checklist of a HEARTBEAT.md; dates without an offset are in `zone`."""
    parts: list[ItemPart] = []
    in_tasks = False
    for group in _groups(_COMMENT.sub("", text.removeprefix("\ufeff")).splitlines()):
        head = group[0].strip()
        if head.lower() == "tasks:":
            in_tasks = True
            parts.append(ItemPart(group))
        elif not head or _NOISE.fullmatch(head):
            in_tasks = in_tasks and not head.startswith("#")
            parts.append(ItemPart(group))
        else:
            parts.append(_part(group, in_tasks=in_tasks, zone=zone))
    return Checklist(tuple(parts))


def item_hash(text: str) -> str:
    """The name of an entry with this text."""
    return hashlib.sha256(_normal(text).encode()).hexdigest()[:16]


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _groups(lines: list[str]) -> Iterable[tuple[str, ...]]:
    """Entries with the deeper lines below them; every other line alone."""
    group: list[str] = []
    depth = -1
    for line in lines:
        is_deeper = depth >= 0 and line.strip() and _indent(line) > depth
        if group and not is_deeper:
            yield tuple(group)
            group = []
        group.append(line)
        if not is_deeper:
            depth = _indent(line) if _ENTRY.match(line.strip()) else -1
    if group:
        yield tuple(group)


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _part(lines: tuple[str, ...], *, in_tasks: bool, zone: ZoneInfo) -> ItemPart:
    entry = _ENTRY.match(lines[0].strip())
    if entry is None:
        return ItemPart(lines, is_open=True)
    if entry["box"] and entry["box"] in "xX":
        return ItemPart(lines, is_off=True)
    if not entry["text"] and len(lines) == 1:
        return ItemPart(lines)
    whens = {kind.lower(): value.strip() for kind, value in _WHEN.findall(lines[0])}
    if in_tasks and not whens:
        whens = _task_fields(lines)
    due, every = _date(whens.get("due", ""), zone), _duration(whens.get("every", ""))
    read = {"due": due, "every": every}
    mistakes = tuple(
        f"{lines[0].strip()!r}: {kind} {value!r} {_fault(kind, value)}; write it like {_FORMS[kind]}"
        for kind, value in whens.items()
        if read[kind] is None
    )
    if due is None and every is None:
        return ItemPart(lines, is_open=True, is_listed=True, mistakes=mistakes)
    text = "\n".join(line.strip() for line in lines)
    return ItemPart(lines, item=Item(item_hash(text), text, due, every), mistakes=mistakes)


def _task_fields(lines: tuple[str, ...]) -> dict[str, str]:
    """`due` and `every` of a `- name:` entry; none if it is another kind of entry."""
    matches = [match for line in lines if (match := _FIELD.fullmatch(line.strip()))]
    fields = {match[1].lower(): match[2].strip().strip("\"'") for match in matches}
    if "name" not in fields:
        return {}
    given = {"due": fields.get("due"), "every": fields.get("interval") or fields.get("every")}
    return {kind: value for kind, value in given.items() if value}


def _date(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _duration(text: str) -> timedelta | None:
    try:
        every = parse_duration(text)
    except ValueError:
        return None
    return every if every >= _LEAST else None


def _fault(kind: str, text: str) -> str:
    """Why the time is none."""
    if kind == "every":
        with suppress(ValueError):
            parse_duration(text)
            return f'is too short: "{format_duration(_LEAST)}" is the least'
    return "cannot be read"
