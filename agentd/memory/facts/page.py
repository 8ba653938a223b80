"""`memory/facts.md`: lines that are facts, and whatever else the user wrote, kept as it is. Pure.

A bullet is a fact. Above the other headings it holds, below `Proposed` stands what waits for the user's
yes, below `Earlier` what is no longer so, and below `Forgotten` there are only marks; a bullet without a comment is a new fact wherever it stands.
Lines that nobody touched keep every byte; a line that cannot be read stays where it is and is told
as trouble.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final

from agentd.core.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Provenance,
    Triple,
)
from agentd.core.turn import SessionKey

# One fact as a line of markdown and back: the sentence, and behind it a comment that carries the rest.
#
# - The user's dog is called Rex. <!-- fact id=k3f9q2ma category=personal source=explicit … -->
#
# Keys may be missing. What stands in quotes has its quotes and backslashes escaped by a backslash, and
# the fields of a triple are told apart by `|`. Neither sentence nor comment can end the comment early.

MOST_CHARS = 4_096

_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_PAIR = re.compile(r'\s*([a-z]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)', re.ASCII)
_BARE = re.compile(r"[\w.:#@+/-]+", re.ASCII)
_OPENS, _CLOSES = re.compile(r"<(?=!--)"), re.compile(r"(?<=--)>")
_AMPERSAND = re.compile(r"&(?=(?:amp|lt|gt);)")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}
_BACKSLASHED = re.compile(r"\\(.)", re.DOTALL)
_FIELD = re.compile(r"(?:[^|\\]|\\.)*", re.DOTALL)
_UNWANTED = frozenset(
    "\ufffd\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_NOWHERE = Provenance()
_PROPOSED = str(FactStatus.PROPOSED)
_BROKEN = "its comment cannot be read"


class BadLine(ValueError):
    """A line is no fact. `str` says why, `cure` what to do about it."""

    def __init__(self, why: str, cure: str = "correct the line, or delete it") -> None:
        super().__init__(why)
        self.cure = cure


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A fact as its line says it. What the line does not say is None, and `id` is "" for a line that
    was written by hand.
    """

    text: str
    id: str = ""
    category: Category | None = None
    source: FactSource | None = None
    confidence: float | None = None
    since: datetime | None = None
    noted: datetime | None = None
    until: datetime | None = None
    by: str = ""
    origin: Provenance = _NOWHERE
    triple: Triple | None = None
    is_proposed: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether it says all that a fact has."""
        needed = (self.category, self.source, self.confidence, self.since, self.noted)
        return bool(self.id) and None not in needed

    def status(self, now: datetime) -> FactStatus:
        """What it says of itself, now."""
        if self.is_proposed:
            return FactStatus.PROPOSED
        if self.by:
            return FactStatus.SUPERSEDED
        return FactStatus.ENDED if self.until and self.until <= now else FactStatus.ACTIVE

    def fact(self, fact_id: str, now: datetime) -> Fact:
        """The fact, with what is usual in the place of what is missing."""
        source = self.source or FactSource.FILE
        since = self.since or self.noted or now
        return Fact(
            id=fact_id,
            text=self.text,
            category=self.category or Category.PERSONAL,
            source=source,
            confidence=source.confidence if self.confidence is None else self.confidence,
            valid_from=since,
            noted_at=self.noted or now,
            status=self.status(now),
            valid_to=self.until,
            superseded_by=self.by,
            origin=self.origin,
            triple=self.triple,
            replaces=self.replaces,
        )


def clean(text: str) -> str:
    """The text as one line, its whitespace one space, without control characters, those that turn its
    direction and those that stand for damaged ones.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if c.isspace() else c for c in text if c.isspace() or not _is_unwanted(c))
    return " ".join("".join(kept).split())


def clean_triple(triple: Triple | None) -> Triple | None:
    """The triple with clean fields; None if one of them says nothing."""
    if triple is None:
        return None
    fields = [clean(part) for part in (triple.subject, triple.relation, triple.value)]
    return Triple(*fields) if all(fields) else None


def bullet(fact: Fact) -> str:
    """The line of a fact, without its end."""
    triple, origin = fact.triple, fact.origin
    pairs = {
        "id": fact.id,
        "category": str(fact.category),
        "source": str(fact.source),
        "confidence": repr(fact.confidence),
        "since": _stamp(fact.valid_from),
        "noted": _stamp(fact.noted_at),
        "until": _stamp(fact.valid_to) if fact.valid_to else "",
        "by": fact.superseded_by,
        "from": f"{origin.session}#{origin.seq}" if origin.session else "",
        "status": _PROPOSED if fact.status is FactStatus.PROPOSED else "",
        "replaces": ",".join(fact.replaces),
    }
    told = [f"{key}={_value(value)}" for key, value in pairs.items() if value]
    if triple is not None:
        parts = (triple.subject, triple.relation, triple.value)
        told.append(f"triple={_quoted('|'.join(_slashed(part, '|') for part in parts))}")
    return f"- {_escaped(fact.text)} <!-- fact {' '.join(told)} -->"


def tombstone(fact_id: str, at: datetime) -> str:
    """The line that says of a forgotten fact no more than that."""
    return f"<!-- forgotten id={fact_id} at={_stamp(at)} -->"


def read_bullet(text: str, annotation: str | None) -> PageEntry:
    """What a bullet says: its text, and the inside of its comment behind `fact`. Raises BadLine."""
    if "<!--" in text or "-->" in text:
        raise BadLine("it has a comment that is not agentd's", "take the comment out")
    words = clean(_plain(text))
    if not words:
        raise BadLine("it says nothing", "delete the line to forget the fact")
    if len(words) > MOST_CHARS:
        raise BadLine(f"it has more than {MOST_CHARS} characters", "split it into several lines")
    if annotation is None:
        return PageEntry(words)
    values = _pairs(annotation)
    fact_id = values.get("id", "")
    if not _ID.fullmatch(fact_id):
        raise BadLine("its comment names no id", "delete the comment to make it a new fact")
    try:
        return PageEntry(
            text=words,
            id=fact_id,
            category=Category(values["category"]) if "category" in values else None,
            source=FactSource(values["source"]) if "source" in values else None,
            confidence=_confidence(values["confidence"]) if "confidence" in values else None,
            since=_time(values["since"]) if "since" in values else None,
            noted=_time(values["noted"]) if "noted" in values else None,
            until=_time(values["until"]) if "until" in values else None,
            by=values.get("by", ""),
            origin=_origin(values["from"]) if "from" in values else _NOWHERE,
            triple=_triple(values["triple"]) if "triple" in values else None,
            is_proposed=values.get("status") == _PROPOSED,
            replaces=tuple(i for i in values.get("replaces", "").split(",") if _ID.fullmatch(i)),
        )
    except ValueError as error:
        raise BadLine(f"{_BROKEN}: {error}") from None


def read_tombstone(annotation: str) -> tuple[str, datetime]:
    """Whose it is, and since when. Raises BadLine."""
    values = _pairs(annotation)
    if not _ID.fullmatch(values.get("id", "")):
        raise BadLine("it names no id")
    try:
        return values["id"], _time(values["at"])
    except (KeyError, ValueError):
        raise BadLine("it says no time") from None


def _pairs(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _PAIR.match(text, at)
        if found is None:
            raise BadLine(_BROKEN)
        key, value = found[1], found[2]
        if value.startswith('"'):
            value = _plain(value[1:-1])
            value = value if key == "triple" else _BACKSLASHED.sub(r"\1", value)
        if key in values:
            raise BadLine(f"{_BROKEN}: it says {key} twice")
        values[key] = value
        at = found.end()
    return values


def _confidence(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        msg = f"confidence {text} is not between 0 and 1"
        raise ValueError(msg)
    return value


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _origin(text: str) -> Provenance:
    session, _, seq = text.rpartition("#")
    return Provenance(SessionKey(session), int(seq)) if session else _NOWHERE


def _triple(text: str) -> Triple | None:
    fields = text.split("|") if "\\" not in text else list(_fields(text))
    if len(fields) != 3:
        msg = "a triple has three fields"
        raise ValueError(msg)
    return clean_triple(Triple(*fields))


def _fields(text: str) -> Iterator[str]:
    at = 0
    while at <= len(text) and (found := _FIELD.match(text, at)):
        yield _BACKSLASHED.sub(r"\1", found[0])
        at = found.end() + 1


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _value(text: str) -> str:
    return text if _BARE.fullmatch(text) and "--" not in text else _quoted(_slashed(text, ""))


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _slashed(text: str, more: str) -> str:
    return "".join(f"\\{c}" if c in '\\"' or c in more else c for c in text)


def _escaped(text: str) -> str:
    """The text without anything that begins or ends a comment; `_plain` undoes it."""
    return _CLOSES.sub("&gt;", _OPENS.sub("&lt;", _AMPERSAND.sub("&amp;", text)))


def _plain(text: str) -> str:
    return _ENTITY.sub(lambda found: _CHARACTERS[found[1]], text)


def _is_unwanted(character: str) -> bool:
    return character in _UNWANTED or unicodedata.category(character) in ("Cc", "Cs")


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
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


class PagePart(Enum):
    """A part of the page, told by the heading above."""

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
    """A line as it stands, without its end; a bullet has the lines along that go on with it. At most
    one of `entry`, `buried` and `trouble` is set, none for other text.
    """

    raw: str
    part: PagePart = PagePart.NOW
    entry: PageEntry | None = None
    buried: tuple[str, datetime] | None = None
    trouble: BadLine | None = None

    @property
    def id(self) -> str:
        """The id of the fact that stands here, or stood here; "" if there is none."""
        if self.buried is not None:
            return self.buried[0]
        return self.entry.id if self.entry else ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line that cannot be read. `line` counts from 1."""

    line: int
    why: str
    cure: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A line with its place: `index` among the page's lines, `number` in the file, from 1."""

    index: int
    number: int
    line: PageLine


@dataclass(frozen=True, slots=True)
class Page:
    """The file."""

    lines: tuple[PageLine, ...] = ()

    def render(self) -> str:
        """Its text."""
        return "\n".join([line.raw for line in self.lines])

    def placed(self) -> Iterator[Placed]:
        """Every line with its number."""
        number = 1
        for index, line in enumerate(self.lines):
            yield Placed(index, number, line)
            number += 1 + line.raw.count("\n")

    def entries(self) -> Mapping[str, PageEntry]:
        """What is said under each id."""
        return {line.entry.id: line.entry for line in self.lines if line.entry and line.entry.id}

    def tombstones(self) -> Mapping[str, datetime]:
        """When each forgotten fact was forgotten, by id."""
        return dict(line.buried for line in self.lines if line.buried)

    def troubles(self) -> tuple[Trouble, ...]:
        """The lines that cannot be read."""
        return tuple(
            Trouble(place.number, str(trouble), trouble.cure)
            for place in self.placed()
            if (trouble := place.line.trouble) is not None
        )

    def damaged(self) -> frozenset[str]:
        """The ids that lines still name which cannot be read."""
        raws = [line.raw for line in self.lines if line.trouble is not None]
        return frozenset(found for raw in raws for found in _NAMED.findall(raw))

    def edited(
        self,
        facts: Sequence[Fact] = (),
        *,
        adopted: Mapping[int, Fact] | None = None,
        cut: Collection[int] = (),
        buried: Mapping[str, datetime] | None = None,
        dropped: Collection[str] = (),
    ) -> Page:
        """The page with these facts, each in the part that its status asks for: in its line, or at the
        end of the part. `adopted` gives facts to lines by their index, `cut` takes lines out by theirs,
        `dropped` by id; `buried` leaves nothing of a fact but a mark.
        """
        wanted = {fact.id: fact for fact in facts}
        gone = {*dropped, *(buried or {})}
        named = wanted.keys() | gone
        lines: list[PageLine] = []
        kept = 0  # of our lines: of many that stay as they are, a run is taken over at once
        touched = [at for at, line in enumerate(self.lines) if (e := line.entry) and e.id in named]
        for index in sorted({*touched, *(adopted or {}), *cut}):
            lines += self.lines[kept:index]
            kept = index + 1
            line = self.lines[index]
            if index in cut or (line.entry and line.id in gone):
                continue
            fact = (adopted or {}).get(index) or wanted.get(line.id)
            if line.entry is None or fact is None:
                lines.append(line)
            elif _part(fact) is line.part:
                lines.append(_written(line, fact))
                wanted.pop(fact.id, None)
            else:
                wanted.setdefault(fact.id, fact)
        lines += self.lines[kept:]
        marked = {line.id for line in self.lines if line.buried} if buried else frozenset()
        fresh = [_fresh(fact) for fact in wanted.values() if fact.id not in gone]
        fresh += [_grave(i, at) for i, at in (buried or {}).items() if i not in marked]
        for part in PagePart:
            if added := [line for line in fresh if line.part is part]:
                is_new = not any(line.part is part for line in lines)
                _add(lines, part, added)
                if is_new:  # what stands behind its heading is in it now
                    lines = list(_parted(lines))
        return Page(tuple(lines))


def parse(text: str) -> Page:
    """The page; never fails. Of two lines with the same id the second is trouble."""
    lines: list[PageLine] = []
    part, in_fence = PagePart.NOW, False
    seen: set[str] = set()
    for raw in _joined(text.split("\n")):
        if heading := _HEADING.match(raw):
            part = _PARTS.get(_title(heading[1]), PagePart.NOW)
        if _FENCE.match(raw):
            in_fence = not in_fence
        line = _line(raw, part, is_quoted=in_fence)
        if line.id and line.id in seen:
            line = PageLine(raw, part, trouble=BadLine(f"the id {line.id} stands here once more"))
        seen.add(line.id)
        lines.append(line)
    return Page(tuple(lines))


def _joined(raws: Sequence[str]) -> Iterator[str]:
    """The lines, a bullet together with those that go on with it."""
    held: str | None = None
    for raw in raws:
        if held is not None and _GOES_ON.match(raw):
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


def _line(raw: str, part: PagePart, *, is_quoted: bool) -> PageLine:
    try:
        if _NOT_UTF_8.search(raw):
            raise BadLine("it is not UTF-8", "save the file as UTF-8, or correct the line")
        if _GARBLED.search(raw):
            raise BadLine("it has characters that no text has: it is damaged")
        if found := _FORGOTTEN.fullmatch(raw):
            return PageLine(raw, part, buried=read_tombstone(found[1].rstrip()))
        body = _BULLET.fullmatch(raw)
        if body and (told := _annotated(body[1].rstrip())):
            return PageLine(raw, part, read_bullet(*told))
        if _OURS.search(raw):
            raise BadLine("it has a part of a comment of agentd's")
        if not body or is_quoted or not body[1].strip():
            return PageLine(raw, part)
        return PageLine(raw, part, read_bullet(body[1], None))
    except BadLine as why:
        return PageLine(raw, part, trouble=why)


def _annotated(said: str) -> tuple[str, str] | None:
    """The words and the annotation behind them, if there is one."""
    found = _FACT.search(said) if said.endswith("-->") else None
    return (said[: found.start()].rstrip(), said[found.end() : -3].rstrip()) if found else None


def _title(words: str) -> str:
    return words.rstrip().rstrip("#").rstrip().casefold()


def _parted(lines: Sequence[PageLine]) -> Iterator[PageLine]:
    """The lines, each with the part that it stands in now."""
    part = PagePart.NOW
    for line in lines:
        if line.entry is None and (heading := _HEADING.match(line.raw)):
            part = _PARTS.get(_title(heading[1]), PagePart.NOW)
        yield line if line.part is part else replace(line, part=part)


def _part(fact: Fact) -> PagePart:
    if fact.status is FactStatus.PROPOSED:
        return PagePart.PROPOSED
    return PagePart.NOW if fact.is_active else PagePart.EARLIER


def _written(line: PageLine, fact: Fact) -> PageLine:
    """The line, changed only if it says something else."""
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


def _add(lines: list[PageLine], part: PagePart, added: Sequence[PageLine]) -> None:
    """Put lines at the end of their part, which is made if there is none."""
    if not any(line.raw.strip() for line in lines):
        lines[:] = [PageLine(_TITLE), PageLine("")]
    places = [n for n, line in enumerate(lines) if line.part is part]
    if part is PagePart.NOW:
        end = next((at for at, n in enumerate(places) if at != n), len(places))
    elif places:
        end = places[-1] + 1
    else:
        last = _after_text(lines, _where(lines, part))
        head = [PageLine("", lines[last - 1].part), PageLine(_TITLES[part], part)]
        lines[last:last] = head
        end = last + len(head)
    end = _after_text(lines, end)
    before = lines[end - 1] if end else PageLine("")
    is_list = before.entry is not None or before.buried is not None
    gap = [] if is_list or not before.raw.strip() else [PageLine("", part)]
    lines[end:end] = [*gap, *added]
    if lines[-1].raw.strip():
        lines.append(PageLine("", lines[-1].part))


def _where(lines: Sequence[PageLine], part: PagePart) -> int:
    """Before which line a part that is not there yet begins."""
    order = list(PagePart)
    behind = order[order.index(part) + 1 :]
    return next((n for n, line in enumerate(lines) if line.part in behind), len(lines))


def _after_text(lines: Sequence[PageLine], end: int) -> int:
    """Behind the last line before `end` that is not blank."""
    while end and not lines[end - 1].raw.strip():
        end -= 1
    return end
