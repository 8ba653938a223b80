"""Formats the hits of a memory search for people: place, text, and why each was found."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from agentd.core.search import EmptyReason, SearchShortfall
from agentd.interfaces.commands.plain import folded, is_plain, visible
from agentd.memory.index.search import words

Hit = dict[str, Any]

_BOLD, _DIM, _END = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_INDENT = "    "
_COLUMNS = 7  # hits beside each other in the table of scores
_TOLD = (  # scores that tell a person something when they are as high as this
    ("exact", 0.99, "to the letter"),
    ("date", 0.99, "of the days asked for"),
    ("answers", 0.4, "follows a question like yours"),
)
SCORES: Mapping[str, str] = {  # in the table; at most 24 letters, so that seven hits fit beside
    "keyword": "words of the query",
    "cover": "share of its words",
    "wide_cover": "share, lines around too",
    "exact": "to the letter",
    "vector": "found by meaning",
    "cosine": "meaning",
    "meaning": "meaning against others",
    "nearness": "how far it stands out",
    "nearness_covered": "the same, if words fit",
    "nearness_around": "meaning of neighbours",
    "answers": "follows such a question",
    "asks": "asks and says nothing",
    "date": "of the days asked for",
    "dated": "of them or tells of them",
    "fused": "all of this together",
    "structure": "all, by structure",
    "certainty": "how sure that is",
    "decay": "left of it by its age",
    "importance": "trust in its source",
}
_BESIDE = 0.2  # of the query's words, more in the lines around than in the hit

EMPTY: Mapping[str, tuple[str, str]] = {  # what it means, and what to do next
    EmptyReason.NOTHING_INDEXED: (
        "nothing is indexed yet",
        "write something down, or run `agentd memory index`",
    ),
    EmptyReason.EMPTY_QUERY: (
        "the query has no word to look for",
        "name a person, a thing or a date",
    ),
    EmptyReason.NO_MATCH: ("nothing was found", "try other words, or fewer"),
    EmptyReason.BELOW_THRESHOLD: (
        "nothing that was found is likely enough to be what you mean",
        "try other words, or a lower --min-score",
    ),
    EmptyReason.NOTHING_FITS: (
        "most likely nothing that is written answers this",
        "try other words",
    ),
    EmptyReason.BUDGET: ("not even the best hit fits --max-tokens", "allow more tokens"),
    EmptyReason.SCOPE: ("this may not be searched from here", "ask in a session of the owner"),
    SearchShortfall.INDEXING: (
        "nothing was found so far: the index is being brought up to date",
        "try again in a moment; `agentd memory status` tells how far it is",
    ),
    SearchShortfall.WARMING: (
        "no word of it was found, and meanings are still being loaded",
        "try again in a moment",
    ),
    SearchShortfall.VECTORS_MISSING: (
        "nothing was found so far: not all is embedded yet",
        "try again later; `agentd memory status` tells how many are left",
    ),
    SearchShortfall.EMBEDDER_DOWN: (
        "no word of it was found, and the embedder, which knows meanings, does not answer",
        "try words that stand there; `agentd doctor` tells what is wrong",
    ),
    SearchShortfall.EMBEDDER_SLOW: (
        "no word of it was found, and the embedder, which knows meanings, took too long",
        "try again, or words that stand there",
    ),
}
_LESS = "what has other words for it may be missing"
DEGRADED: Mapping[str, str] = {  # beside hits
    EmptyReason.NOTHING_FITS: "most likely none of this is what you mean; try other words",
    EmptyReason.BUDGET: (
        "the best hit is too long for --max-tokens and is left out: allow more tokens"
    ),
    SearchShortfall.INDEXING: (
        "the index is being brought up to date: there may be more in a moment"
    ),
    SearchShortfall.WARMING: (
        "found by words alone: meanings are still being loaded, try again in a moment"
    ),
    SearchShortfall.VECTORS_MISSING: f"not all can be found by its meaning yet: {_LESS}",
    SearchShortfall.EMBEDDER_DOWN: (
        f"{_LESS}: what compares meanings does not answer, see `agentd doctor`"
    ),
    SearchShortfall.EMBEDDER_SLOW: f"{_LESS}: what compares meanings took too long; try again",
}


class HitLook(Struct, frozen=True):
    """How hits are shown: lines of `width` columns (0: unlimited), with colours or without."""

    width: int = 0
    colours: bool = False

    @classmethod
    def here(cls) -> HitLook:
        """Return the look that suits standard output."""
        if not sys.stdout.isatty():
            return cls()
        return cls(shutil.get_terminal_size().columns, not is_plain(os.environ))


def hits_text(
    result: Mapping[str, Any], query: str, look: HitLook, *, explain: bool = False
) -> str:
    """Return one block a hit; if there is none, why and what to do next."""
    hits: list[Hit] = result["results"]
    if not hits:
        reason = result.get("reason") or EmptyReason.NO_MATCH
        what, then = EMPTY.get(reason, (f"nothing was found ({reason})", "try other words"))
        return _fit(f"{what}\n→ {then}", look)
    wanted = _query_words(query)
    blocks = [_block(hit, wanted, _rivals(hit, hits), look) for hit in hits]
    if explain:
        blocks += [
            _scores(hits[at : at + _COLUMNS], at + 1) for at in range(0, len(hits), _COLUMNS)
        ]
    return "\n\n".join(blocks)


def degraded_text(result: Mapping[str, Any]) -> str:
    """Return in one line which part of the search did not work; "" if all worked, or nothing was
    found.
    """
    reason = result.get("reason")
    if not reason or not result["results"]:
        return ""
    return DEGRADED.get(reason, f"not all could be searched ({reason})")


def _block(hit: Hit, wanted: Mapping[str, frozenset[str]], rivals: int, look: HitLook) -> str:
    place = f"{hit['path']}:{hit['start_line']}"
    if hit["end_line"] != hit["start_line"]:
        place += f"-{hit['end_line']}"
    told = [word for word in (hit["date"], hit["source"], _short(hit["score"])) if word]
    text = unicodedata.normalize("NFC", visible(hit["text"]))
    lines = [
        f"{place}  {' · '.join(told)}",
        f"  {' · '.join(_why(hit, wanted, rivals))}",
        *(f"{_INDENT}{line}".rstrip() for line in text.split("\n")),
    ]
    fitted = [_fit(line, look) for line in lines]
    if look.colours:
        fitted[0] = f"{_BOLD}{fitted[0]}{_END}"
        fitted[1] = f"{_DIM}{fitted[1]}{_END}"
        terms = frozenset().union(*wanted.values())
        fitted[2:] = [_highlight(line, terms) for line in fitted[2:]]
    return "\n".join(fitted)


def _why(hit: Hit, wanted: Mapping[str, frozenset[str]], rivals: int) -> Iterator[str]:
    """Yield the reasons for the hit's rank, in words."""
    scores: Mapping[str, float] = hit.get("scores") or {}
    if hit.get("newer"):
        yield f"older: {hit['newer']} says something newer"
    has = frozenset(words.terms(f"{hit['date'] or ''} {hit['text']}"))
    held = [word for word, terms in wanted.items() if terms & has]
    if held:
        yield f"words: {', '.join(held)}"
    meaning = scores.get("cosine", scores.get("vector"))
    if meaning is not None:
        yield f"meaning {_short(meaning)}"
    around = scores.get("wide_cover", 0.0)
    told = [told for name, least, told in _TOLD if scores.get(name, 0) >= least]
    yield from told if around or held else ()  # a far hit that tells some time is no answer
    if around - scores.get("cover", 0.0) >= _BESIDE:
        yield "the lines around it have more of your words"
    if rivals:
        yield f"newest of {rivals + 1}"
    if (decay := scores.get("decay", 1.0)) <= 0.995:
        yield f"{1 - decay:.0%} less for its age"
    if not scores:
        yield "found by its words"


def _rivals(hit: Hit, hits: Sequence[Hit]) -> int:
    """Return how many hits contain an older value that this hit replaces."""
    inside = range(hit["start_line"], hit["end_line"] + 1)
    places = {f"{hit['path']}:{line}" for line in inside}
    return sum(other.get("newer") in places for other in hits)


def _scores(hits: Sequence[Hit], first: int) -> str:
    """Every partial score: a line each, a column for each hit. What a newer daemon adds keeps its
    name.
    """
    given = dict.fromkeys(name for hit in hits for name in hit["scores"])
    names = [*(name for name in SCORES if name in given), *(n for n in given if n not in SCORES)]
    width = max(map(len, ["score", *(SCORES.get(name, name) for name in names)]))
    rows = [("hit", [str(first + at) for at in range(len(hits))])]
    rows.append(("score", [f"{hit['score']:.3f}" for hit in hits]))
    for name in names:
        found = (hit["scores"].get(name) for hit in hits)
        rows.append(
            (SCORES.get(name, name), ["-" if value is None else f"{value:.3f}" for value in found])
        )
    return "\n".join(
        f"{name:{width}}" + "".join(f"{cell:>8}" for cell in cells) for name, cells in rows
    )


def _query_words(query: str) -> dict[str, frozenset[str]]:
    """The words of the query that are looked for, as written, with their terms."""
    found = {
        word: frozenset(words.terms(word))
        for word in words.raw_words(visible(words.query_part(query)))
    }
    return {word: terms for word, terms in found.items() if terms}


def _highlight(line: str, wanted: frozenset[str]) -> str:
    """The line with the words that hold a wanted term in bold, in whatever form they stand
    there.
    """
    bold: set[int] = set()
    for word in set(words.raw_words(line)):
        shared = wanted & frozenset(words.terms(word))
        # Scripts without spaces are searched by pairs of letters.
        pairs = (
            [] if word.isascii() else [re.escape(t) for t in shared if len(t) == 2 and t in word]
        )
        for piece in pairs or ([rf"(?<!\w){re.escape(word)}(?!\w)"] if shared else []):
            for found in re.finditer(f"(?={piece})", line):
                bold.update(range(found.start(), found.start() + (2 if pairs else len(word))))
    runs = groupby(range(len(line)), lambda at: at in bold)
    parts = ((is_bold, "".join(line[at] for at in run)) for is_bold, run in runs)
    return "".join(f"{_BOLD}{part}{_END}" if is_bold else part for is_bold, part in parts)


def _short(score: float) -> str:
    return f"{score:.2f}".removeprefix("0")


def _fit(text: str, look: HitLook) -> str:
    return folded(text, look.width) if look.width else text
