"""Summarises without a model: the user's own words, shortened, and every identifier. Pure.

The identifiers of the last three user messages come first, since the engine refuses a summary
without them. Every other part has a budget, newest first. The whole has at most half of the tokens
that the request allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agentd.core.prompt import Prompt
from agentd.engine import tokens
from agentd.engine.compaction.extract import identifiers, needed_identifiers
from agentd.engine.compaction.summary import LONGEST
from agentd.providers.offline.conversation import FinalText, Reply, own_words
from agentd.providers.offline.flush import statements
from agentd.providers.offline.language import word_forms
from agentd.providers.offline.language.sentences import is_question

_HEAD = (
    "Extract of the conversation so far, made without a language model: what the user said, "
    "shortened, and the identifiers that came up."
)
_EARLIER, _KNOWN, _ASKED = "Before that:", "The user said:", "The user asked last:"
_LATEST, _EXACT = "Exact, latest:", "Exact:"
_EARLIER_CHARS, _KNOWN_CHARS, _ASKED_CHARS, _EXACT_CHARS = 1_800, 1_800, 600, 1_200
_SHARES = (1.0, 0.5, 0.2)
_LATEST_BYTES = 3_000
_LINE_CHARS = 240
_LAST = 3  # user messages whose identifiers are never dropped
_ROW = re.compile(
    r"(?:\A|\n\n)(user|assistant) \(\d{4}-\d{2}-\d{2} \d{2}:\d{2} [A-Za-z0-9+-]{1,9}\): "
)
_OPENING = '<data source="{}">\n'
_CLOSING = "\n</data>"


class _Earlier(Struct, frozen=True):
    """The parts of an earlier summary: its lines, and the identifiers in its two lists."""

    lines: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


def reply(prompt: Prompt) -> Reply:
    """Return a summary of the request's conversation and of the earlier summary in it."""
    text = own_words(prompt)
    most = prompt.max_tokens // 2 if prompt.max_tokens else LONGEST
    before, text = _split_fence(text, "earlier summary")
    conversation, rest = _split_fence(text, "conversation")
    if not conversation:
        return FinalText(_fit(rest, before, (), most))
    # The text after the conversation may name identifiers that a first try has lost.
    return FinalText(_fit(conversation, before, identifiers(rest), most))


def _fit(conversation: str, before: str, wanted: Sequence[str], most: int) -> str:
    """Return the longest summary of at most `most` tokens, or the shortest there is."""
    texts = (summarise(conversation, before, wanted, share) for share in _SHARES)
    text = next((text for text in texts if tokens.of_text(text) <= most), "")
    return text or summarise(conversation, before, wanted, 0)


def summarise(
    conversation: str, before: str = "", wanted: Sequence[str] = (), share: float = 1.0
) -> str:
    """Return a summary as plain text of limited length, with the required identifiers: `wanted`,
    and those of the last user messages. `share` scales the budgets of the other parts.
    """
    said, others = _rows(conversation)
    earlier = _parse_earlier(before)
    latest = needed_identifiers(reversed(said[-_LAST:]), _LATEST_BYTES)
    if len(said) < _LAST:  # some of the last three are in the earlier summary
        latest = _distinct((*earlier.latest, *latest))
    latest = _distinct((*latest, *wanted))
    questions = [_short(t) for t in said if is_question(t)][-3:]
    exact = (*_names(others), *earlier.exact, *earlier.latest, *_names(said[:-_LAST]))
    rest = [name for name in _distinct(exact) if name not in set(latest)]
    stated = [_short(t) for t in statements(said)]
    old = [
        line
        for line in earlier.lines
        if word_forms.normal(line) not in set(map(word_forms.normal, stated))
    ]
    sections = (
        _section(_EARLIER, _fitting(old, share * _EARLIER_CHARS)),
        _section(_KNOWN, _fitting(stated, share * _KNOWN_CHARS)),
        _section(_ASKED, _fitting(questions, share * _ASKED_CHARS)),
        _title_line(_LATEST, latest),
        _title_line(_EXACT, _fitting(rest, share * _EXACT_CHARS)),
    )
    return "\n".join((_HEAD, *filter(None, sections)))


def _split_fence(text: str, label: str) -> tuple[str, str]:
    """Return the content of the fence at the beginning of the text, if it has this label, and the
    text after it.
    """
    opening = _OPENING.format(label)
    if not text.startswith(opening):
        return "", text
    inside, _, rest = text[len(opening) :].partition(_CLOSING)
    return inside, rest.lstrip("\n")


def _rows(conversation: str) -> tuple[list[str], list[str]]:
    """Return the user's messages, and all other rows: answers, tool calls and results."""
    starts = list(_ROW.finditer(conversation))
    if not starts:
        return [conversation], []
    ends = [*(m.start() for m in starts[1:]), len(conversation)]
    said: list[str] = []
    others: list[str] = []
    calls = False
    for match, end in zip(starts, ends, strict=True):
        words_of = conversation[match.end() : end]
        is_result = calls and words_of.startswith(("[result: ", "[error: "))
        mine = match[1] == "user" and not is_result
        (said if mine else others).append(words_of)
        calls = match[1] == "assistant" and "[calls " in words_of
    return said, others


def _parse_earlier(before: str) -> _Earlier:
    lines: list[str] = []
    named: dict[str, tuple[str, ...]] = {_LATEST: (), _EXACT: ()}
    for line in before.split("\n"):
        label = next((name for name in named if line.startswith(f"{name} ")), "")
        if label:
            named[label] = tuple(line.removeprefix(label).split())
        elif line.strip() and line not in (_HEAD, _EARLIER, _KNOWN, _ASKED):
            lines.append(line.strip().removeprefix("- "))
    if not named[_LATEST]:  # not a summary of this provider
        named[_LATEST] = identifiers(before)
    return _Earlier(tuple(lines), named[_LATEST], named[_EXACT])


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    return _distinct(name for text in texts for name in identifiers(text))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _short(text: str) -> str:
    flat = " ".join(text[: 4 * _LINE_CHARS].split())
    return flat if len(flat) <= _LINE_CHARS else f"{flat[:_LINE_CHARS]} […]"


def _fitting(lines: Sequence[str], room: float) -> list[str]:
    """Return the newest lines that fit into `room` characters, in order."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 3
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join((title, *(f"- {line}" for line in lines))) if lines else ""


def _title_line(title: str, names: Sequence[str]) -> str:
    return f"{title} {' '.join(names)}" if names else ""
