"""Normal forms of labels and predicates, one spelling for each name; and a workspace's aliases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType

from agentd.core.errors import GraphError
from agentd.zero.hashes import utf8

MOST_BYTES = 16_384  # of a label or predicate in normal form
FEWEST_HUMPS = 3  # capitalised parts of a word that is split: GitHub and JavaScript stay one word

# Spellings that occur only by mistake; a user's own aliases are in memory/graph/aliases.md.
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
MINUS = "−"  # stands for a hyphen on one side of a word


def normal_label(text: str) -> str:
    """Return the normal form of a concept's label: equal for all its spellings, and itself normal.

    - Unicode in NFC and without case, invisible characters dropped, `’` as `'`.
    - Words are joined by one `-`, whatever white space, `_`, hyphens and dashes were between them:
      "Long Term  Memory" and "long_term-memory" are "long-term-memory".
    - A hyphen on one side of a word only is significant and becomes a minus sign: "-5" is not "5",
      nor "A-" "A".
    - A word of three or more capitalised parts is split ("LongTermMemory"); shorter ones are names
      ("GitHub", "iPhone", "JavaScript") and stay one word.
    - All else stays: "python-3.11", "main.rs", "c++", "a|b".

    Raises GraphError for a label that is empty in normal form, longer than MOST_BYTES, or has a
    lone surrogate.
    """
    words = _GAP.sub(_joint, " ".join(map(_split, _clean(text, "label").split(" "))))
    return _check(_fold(words), text, "label")


def normal_predicate(text: str) -> str:
    """Return the normal form of a predicate: like a label's, but with `_` between words and none at
    the ends, and split at every capital after a small letter: "is a", "is-a" and "isA" are "is_a".

    Raises GraphError as `normal_label` does.
    """
    words = "".join(_split_capitals(_clean(text, "predicate"), " "))
    return _check(_fold(_GAP.sub("_", words).strip("_")), text, "predicate")


class Aliases:
    """The aliases of concepts in one workspace.

    `table` maps aliases to names, in any spelling; chains are followed to their end. A workspace's
    own table has precedence over the default: `{**DEFAULT_ALIASES, **own}`. Raises GraphError for a
    circle of aliases, for one alias with two names, and for an invalid label.
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
        """Return the normal label of the concept that `label` names. Raises GraphError for an
        invalid label.
        """
        name = normal_label(label)
        return self._ends.get(name, name)

    @property
    def table(self) -> Mapping[str, str]:
        """Each alias with the label that its chain ends at, both in normal form."""
        return MappingProxyType({alias: end for alias, end in self._ends.items() if alias != end})


def parse_aliases(text: str) -> dict[str, str]:
    """Parse lines `stm = short-term-memory` into a table for `Aliases`, in normal form. Blank
    lines, lines that begin with `#`, a byte order mark and a list's `- ` or `* ` are ignored.

    Raises GraphError, with the line, for a line of another form, an invalid name, one alias with
    two names, and a circle of aliases.
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
                (
                    f"{alias!r} stood for {table[alias]!r} in line {lines[alias]} and "
                    f"stands for {name!r} here"
                ),
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
    """Follow the steps from `start` to their end, a name without a further step. `ends` caches for
    each name passed the end found, from which later calls go on.
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
    """Return the text as one line in NFC, without invisible characters; control characters become
    spaces.
    """
    if len(text) > MOST_BYTES:
        raise _too_long(len(text), text, what)
    utf8(text)
    seen = _CONTROL.sub(" ", _UNSEEN.sub("", text).translate(_SPELLINGS))
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _fold(text: str) -> str:
    """Remove case: the Unicode Standard's canonical caseless form (section 3.13), composed."""
    decomposed = unicodedata.normalize("NFD", text)
    folded = unicodedata.normalize("NFD", decomposed.casefold())
    return unicodedata.normalize("NFC", folded)


def _joint(gap: re.Match[str]) -> str:
    """Return what replaces a gap between words: hyphens that touch one word only become minus
    signs.
    """
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
    """Return the word with spaces between its capitalised parts, if it has enough of them and
    nothing else.
    """
    parts = list(_split_capitals(word, ""))
    if len(parts) < FEWEST_HUMPS or not word.isalpha():
        return word
    if not all(len(part) > 1 and part[1:].islower() for part in parts):
        return word
    return " ".join(parts)


def _split_capitals(text: str, joint: str) -> Iterator[str]:
    """Yield the parts of the text that begin at each capital after a small letter, all but the
    first with `joint` before them.
    """
    start = 0
    for at in range(1, len(text)):
        if text[at - 1].islower() and _is_capital(text[at]):
            yield (joint if start else "") + text[start:at]
            start = at
    yield (joint if start else "") + text[start:]


def _is_capital(letter: str) -> bool:
    """Whether the letter is a capital. Cherokee's are not counted: its small letters fold to the
    capitals.
    """
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
