"""Which lines of memory answer a question, and the words for it. Pure.

A line answers when it holds enough of the question's telling words, and at least one that is not a
word for anything. Notes come before what was said in conversations, newer before older. What is
shown is quoted with its place, so that the reader can judge it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.providers.offline import words
from agentd.providers.offline.hits import Line
from agentd.providers.offline.phrases import CLOSEST, FOUND, NOTHING, is_ours
from agentd.providers.offline.sentences import is_question, split, without_order

_ENOUGH, _SURE = 0.5, 0.6
_ENOUGH_PAIRS = 0.3  # letter pairs across word borders match nothing
_SAME = 0.05  # scores this near are equal
_AROUND = 0.8  # of a word that stands only above the line
_NEAR = 0.2  # below the best: told as well
_OTHERS = 2
_CHARS = 400  # shown of one line


@dataclass(frozen=True, slots=True)
class _Match:
    line: Line
    text: str
    score: float

    @property
    def key(self) -> tuple[float, bool, str, int]:
        """Orders matches, the best last."""
        return (round(self.score / _SAME), self.line.is_note, self.line.date, self.line.number)


def answer(question: str, found: Sequence[Line]) -> str:
    """The best lines with their places, or that there are none."""
    best = _distinct(sorted(_matches(question, found), key=lambda m: m.key, reverse=True))
    if not best:
        return NOTHING
    top = best[0]
    others = [m for m in best[1:] if m.score >= top.score - _NEAR][:_OTHERS]
    title = FOUND if top.score >= _SURE else CLOSEST
    if not others:
        return f"{title} {_quoted(top)}"
    return "\n".join([f"{title} {_quoted(top)}", *(f"Also: {_quoted(m)}" for m in others)])


def about(topic: str, found: Sequence[Line]) -> tuple[Line, ...]:
    """Every line that the topic's words are in, best first."""
    best = sorted(_matches(topic, found), key=lambda m: m.key, reverse=True)
    return tuple({m.line.place: m.line for m in best}.values())


def quoted(text: str, place: str) -> str:
    """The text in quotation marks, its place behind it."""
    shown = text if len(text) <= _CHARS else f"{text[:_CHARS].rstrip()} […]"
    return f"“{shown}” ({place})"


def _quoted(match: _Match) -> str:
    line = match.line
    who = "earlier answer, " if line.speaker == "assistant" else ""
    outside = "text from outside, " if line.is_foreign else ""
    return quoted(match.text, f"{who}{outside}{line.place}")


def _matches(question: str, found: Sequence[Line]) -> list[_Match]:
    wanted = words.terms(question)
    if not wanted:
        return []
    enough = _ENOUGH_PAIRS if all(map(words.is_unspaced, wanted)) else _ENOUGH
    matches = []
    for line in found:
        text = without_order(line.text)
        if not text or _is_noise(line, text):
            continue
        score = _score(wanted, text, line.context)
        if len(text) > _CHARS:
            text = max(split(text), key=lambda piece: _score(wanted, piece), default=text)
        if score >= enough:
            matches.append(_Match(line, text, score * (0.8 if line.speaker == "assistant" else 1)))
    return matches


def _is_noise(line: Line, text: str) -> bool:
    if line.is_heading or text.endswith(":") or is_question(text):
        return True
    return line.speaker == "assistant" and is_ours(text)


def _score(wanted: Sequence[str], text: str, context: str = "") -> float:
    """The share of the wanted words that the text has, those of its context counting for less; 0
    if it has none itself (unless its context has all), or only words that go with anything.
    """
    held = set(words.terms(text))
    around = set(words.terms(context)) if context else set()
    strong = [t for t in wanted if words.weight(t) == 1]
    is_on_topic = bool(held.intersection(wanted)) or around.issuperset(wanted)
    if not is_on_topic or (strong and not (held | around).intersection(strong)):
        return 0.0
    score = sum(words.weight(t) * _share(t, held, around) for t in wanted)
    score /= sum(map(words.weight, wanted))
    # “What is my name?” has no telling word: only a line that says little else can mean that.
    return score if strong else score * min(1.0, 2 / (1 + len(held)))


def _share(term: str, held: set[str], around: set[str]) -> float:
    return 1.0 if term in held else _AROUND if term in around else 0.0


def _distinct(matches: Sequence[_Match]) -> list[_Match]:
    """Without those that a better one says already."""
    kept: list[_Match] = []
    said: list[str] = []
    for match in matches:
        normal = words.normal(match.text)
        if not any(normal in other or other in normal for other in said):
            kept.append(match)
            said.append(normal)
    return kept
