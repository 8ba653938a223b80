"""One spelling for each name: labels and predicates in normal form, and a workspace's other names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType

from agentd.core.errors import GraphError
from agentd.zero.hashes import utf8

MOST_BYTES = 16_384  # of a label or predicate in normal form
FEWEST_HUMPS = 3  # that a capitalised word is split at: GitHub and JavaScript are one word

# Written solid only by mistake; a user's own table stands in memory/graph/aliases.md.
DEFAULT_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "longterm-memory": "long-term-memory",
        "longtermmemory": "long-term-memory",
        "shortterm-memory": "short-term-memory",
        "shorttermmemory": "short-term-memory",
    }
)

_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SPELLINGS = str.maketrans({"\u2019": "'", **dict.fromkeys("‐‑‒–—―", "-")})
_GAP = re.compile(r"[\s_-]+")
MINUS = "−"  # a hyphen that means something


def normal_label(text: str) -> str:
    """The normal form of a concept's label: equal for all the ways to spell it, and again itself.

    - Unicode in NFC and without case, invisible characters dropped, `’` as `'`.
    - Words are joined by one `-`, whatever white space, `_`, hyphens and dashes stood between them:
      "Long Term  Memory" and "long_term-memory" are "long-term-memory".
    - A hyphen on one side of a word only means something and becomes a minus sign: "-5" is not "5",
      nor "A-" "A".
    - A word of three or more capitalised parts is split ("LongTermMemory"); shorter ones are names
      ("GitHub", "iPhone", "JavaScript") and stay one word.
    - All else stays: "python-3.11", "main.rs", "c++", "a|b".

    Raises GraphError for a label that says nothing, is longer than MOST_BYTES or holds half a
    surrogate pair.
    """
    words = _GAP.sub(_joint, " ".join(map(_split, _clean(text, "label").split(" "))))
    return _check(_fold(words), text, "label")


def normal_predicate(text: str) -> str:
    """The normal form of a predicate, like a label's but with `_` between its words, none at its ends,
    and split at every capital behind a small letter: "is a", "is-a" and "isA" are "is_a".

    Raises GraphError as `normal_label` does.
    """
    words = "".join(_split_capitals(_clean(text, "predicate"), " "))
    return _check(_fold(_GAP.sub("_", words).strip("_")), text, "predicate")


class Aliases:
    """Other names of concepts, of one workspace.

    `table` leads from a name to the one it stands for, in any spelling; chains are followed to their
    end. A workspace's own table stands above the usual one: `{**DEFAULT_ALIASES, **own}`. Raises
    GraphError for a name that leads back to itself over others, for one that stands for two things, and
    for what is no label.
    """

    def __init__(self, table: Mapping[str, str] = DEFAULT_ALIASES) -> None:
        steps: dict[str, str] = {}
        for alias, name in table.items():
            start, end = normal_label(alias), normal_label(name)
            if steps.setdefault(start, end) != end:
                raise GraphError(
                    f"the alias {start!r} stands for {steps[start]!r} and for {end!r}",
                    cure="keep one of the two",
                )
        ends: dict[str, str] = {}
        self._ends = {start: _end(steps, start, ends) for start in steps}

    def resolve(self, label: str) -> str:
        """The normal label of the concept that this names. Raises GraphError for what is no label."""
        name = normal_label(label)
        return self._ends.get(name, name)

    @property
    def table(self) -> Mapping[str, str]:
        """Each alias with the label it ends at, both in normal form."""
        return MappingProxyType({alias: end for alias, end in self._ends.items() if alias != end})


def parse_aliases(text: str) -> dict[str, str]:
    """The table in a text of lines `stm = short-term-memory`, for `Aliases`, in normal form. Blank
    lines, lines that begin with `#`, a byte order mark and a list's `- ` or `* ` say nothing.

    Raises GraphError, with the line, for a line of another form, a name that is none, a name that
    stands for two things and one that leads back to itself.
    """
    table: dict[str, str] = {}
    ends: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        words = line.strip()
        if words.startswith(("- ", "* ")):
            words = words[2:].strip()
        if not words or words.startswith("#"):
            continue
        alias, name = _pair(words, number)
        if table.get(alias, name) != name:
            raise GraphError(
                f"{alias!r} stood for {table[alias]!r} in line {lines[alias]} and stands for {name!r} here",
                cure="keep one of the two lines",
                line=number,
            )
        table[alias] = name
        lines.setdefault(alias, number)
        _no_circle(table, alias, ends, number)
    return table


def _pair(words: str, line: int) -> tuple[str, str]:
    sign = " = " if " = " in words else "="
    alias, found, name = words.partition(sign)
    if not found:
        raise GraphError("it has no `=`", cure="write `alias = name`", line=line)
    try:
        return normal_label(alias), normal_label(name)
    except GraphError as error:
        raise GraphError(error.message, cure="write `alias = name`", line=line) from None


def _no_circle(
    table: Mapping[str, str], alias: str, ends: MutableMapping[str, str], line: int
) -> None:
    try:
        _end(table, alias, ends)
    except GraphError as error:
        raise GraphError(error.message, cure=error.cure, line=line) from None


def _end(steps: Mapping[str, str], start: str, ends: MutableMapping[str, str]) -> str:
    """Where the steps from `start` end; a name that stands for itself is an end. `ends` keeps for each
    name passed one that the steps lead to, so that they are not taken one by one again.
    """
    seen: dict[str, None] = {start: None}
    name = start
    while (after := ends.get(name) or steps.get(name, name)) != name:
        if after in seen:
            circle = " = ".join(_circle(steps, after))
            raise GraphError(f"the aliases go in a circle: {circle}", cure="take one of them out")
        seen[after] = None
        name = after
    ends.update(dict.fromkeys([one for one in seen if one != name], name))
    return name


def _circle(steps: Mapping[str, str], start: str) -> Iterator[str]:
    yield (name := start)
    while (name := steps[name]) != start:
        yield name
    yield start


def _clean(text: str, what: str) -> str:
    """One line in NFC, without what nobody sees; control characters are spaces."""
    if len(text) > MOST_BYTES:
        raise _too_long(len(text), text, what)
    utf8(text)
    seen = _CONTROL.sub(" ", _UNSEEN.sub("", text).translate(_SPELLINGS))
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _fold(text: str) -> str:
    """Without case: the Unicode Standard's canonical caseless form (section 3.13), composed."""
    decomposed = unicodedata.normalize("NFD", text)
    folded = unicodedata.normalize("NFD", decomposed.casefold())
    return unicodedata.normalize("NFC", folded)


def _joint(gap: re.Match[str]) -> str:
    """What stands between two words for this gap: hyphens that touch one word only are minus signs."""
    run = gap[0]
    is_first, is_last = gap.start() == 0, gap.end() == len(gap.string)
    if is_first and is_last:
        return ""
    before = "" if is_first else run[: len(run) - len(run.lstrip("-"))]
    after = "" if is_last else run[len(run.rstrip("-")) :]
    if is_first or is_last:
        return MINUS * len(before + after)
    if len(before) == len(run):
        return "-"
    return MINUS * len(before) + "-" + MINUS * len(after)


def _split(word: str) -> str:
    """The word with spaces between its capitalised parts, if there are enough and nothing else."""
    parts = list(_split_capitals(word, ""))
    if len(parts) < FEWEST_HUMPS or not word.isalpha():
        return word
    if not all(len(part) > 1 and part[1:].islower() for part in parts):
        return word
    return " ".join(parts)


def _split_capitals(text: str, joint: str) -> Iterator[str]:
    """The text in parts that begin at each capital behind a small letter, the later ones after `joint`."""
    start = 0
    for at in range(1, len(text)):
        if text[at - 1].islower() and _is_capital(text[at]):
            yield (joint if start else "") + text[start:at]
            start = at
    yield (joint if start else "") + text[start:]


def _is_capital(letter: str) -> bool:
    """Cherokee's capitals are what its small letters fold to, so they do not count."""
    return letter.isupper() and letter.casefold() != letter


def _check(name: str, text: str, what: str) -> str:
    if not name:
        raise GraphError(f"the {what} {text[:40]!r} says nothing", cure=f"give a {what} with words")
    size = len(utf8(name))
    if size > MOST_BYTES:
        raise _too_long(size, text, what)
    return name


def _too_long(size: int, text: str, what: str) -> GraphError:
    return GraphError(
        f"the {what} that begins {text[:40]!r} has {size} bytes, more than {MOST_BYTES}",
        cure="shorten it",
    )
