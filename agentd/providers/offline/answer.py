"""Which lines of memory answer a question, and the words for it. Pure.

A line answers when it holds enough of the question's telling words, and at least one that is not a
word for anything. Facts come first, then notes, then what was said in conversations, newer before older;
what no longer holds does not answer. What is shown is quoted with its place, so that the reader can
judge it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentd.domain.workspace import FACTS_PATH
from agentd.providers.offline import words
from agentd.providers.offline.hits import Line
from agentd.providers.offline.holding import (
    is_past,
    later_said,
    says_of_user,
    still_held,
    without_past,
)
from agentd.providers.offline.phrases import (
    CLOSEST,
    FOUND,
    HEARD,
    NOTHING,
    OLDER,
    TOLD,
    is_ours,
)
from agentd.providers.offline.sentences import is_question, split, without_order
from agentd.statements.asking import asked_relations
from agentd.statements.explicit import requested

_ENOUGH, _SURE, _NEARLY_ALL = 0.5, 0.6, 0.8
_ENOUGH_PAIRS = 0.3  # letter pairs across word borders match nothing
_SAME = 0.05  # scores this near are equal
_ASKED_FOR = 1.5  # above all scores: the line says the very thing that is asked for
_AROUND = 0.8  # of a word that stands only above the line
_NEAR = 0.2  # below the best: told as well
_OTHERS = 2
_CHARS = 400  # shown of one line
_USER = re.compile(
    r"\bthe user(?:['’]s)?(?!\w)", re.IGNORECASE
)  # facts are told in the third person


@dataclass(frozen=True, slots=True)
class _Match:
    line: Line
    text: str
    score: float

    @property
    def key(self) -> tuple[float, bool, bool, str, int]:
        """Orders matches, the best last."""
        line = self.line
        score = self.score - (_NEAR if line.is_older else 0)
        return (round(score / _SAME), line.is_fact, line.is_note, line.date, line.number)


def told(question: str, facts: Sequence[str], heard: Sequence[str]) -> str:
    """The facts that surely answer, "" if none does. `heard` is what the user said in this
    conversation: what it says of the same thing is named as well.
    """
    if without_past(question) != question:
        return ""
    best = _best(question, [Line(FACTS_PATH, fact) for fact in facts])
    sure = [match.text for match in best if _is_sure(question, match)]
    if not sure or sure[0] != best[0].text:
        return ""
    lines = [f"{TOLD} {sure[0]}", *(f"Also: {text}" for text in sure[1:])]
    if said := later_said(sure[0], heard):
        lines.append(f"{HEARD} “{said}”")
    return "\n".join(lines)


def answer(question: str, found: Sequence[Line]) -> str:
    """The best lines with their places, or that there are none."""
    best = _best(question, found)
    if not best:
        return NOTHING
    top = best[0]
    if top.line.is_fact and not is_past(top.line) and _is_sure(question, top):
        rest = (m.text if m.line.is_fact else _quoted(m) for m in best[1:])
        return "\n".join([f"{TOLD} {top.text}", *(f"Also: {text}" for text in rest)])
    title = OLDER if top.line.is_older else FOUND if top.score >= _SURE else CLOSEST
    rest = (f"{'Older' if m.line.is_older else 'Also'}: {_quoted(m)}" for m in best[1:])
    return "\n".join([f"{title} {_quoted(top)}", *rest])


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


def _best(question: str, found: Sequence[Line]) -> list[_Match]:
    """What answers, the best first: lines that hold, each said once, as good as the best or nearly."""
    matches = _matches(without_past(question), found)
    held = set(still_held(question, [m.line for m in matches]))
    best = _distinct(
        sorted((m for m in matches if m.line in held), key=lambda m: m.key, reverse=True)
    )
    return [m for n, m in enumerate(best) if n == 0 or m.score >= best[0].score - _NEAR][
        : 1 + _OTHERS
    ]


def _is_sure(question: str, match: _Match) -> bool:
    """Whether a fact has all words of the question, or nearly all if they tell much."""
    has_all = set(words.terms(question)) <= set(words.terms(match.text))
    return match.score >= (_SURE if has_all else _NEARLY_ALL)


def _matches(question: str, found: Sequence[Line]) -> list[_Match]:
    wanted = words.terms(question)
    if not wanted:
        return []
    relations = asked_relations(question)
    enough = _ENOUGH_PAIRS if all(map(words.is_unspaced, wanted)) else _ENOUGH
    matches = []
    for line in found:
        text = without_order(line.text)
        if not text or _is_noise(line, text):
            continue
        score = _score(wanted, text, line.context)
        if len(text) > _CHARS:
            text = max(split(text), key=lambda piece: _score(wanted, piece), default=text)
        is_own = line.speaker != "assistant"
        if is_own and not line.is_foreign and says_of_user(line.text, relations):
            score = _ASKED_FOR
        if score >= enough:
            matches.append(_Match(line, text, score * (1 if is_own else 0.8)))
    return matches


def _is_noise(line: Line, text: str) -> bool:
    if line.is_heading or text.endswith(":") or is_question(text):
        return True
    asked = None if line.is_note else requested(line.text)
    if asked is not None and asked.kind == "forget":
        return True
    return line.speaker == "assistant" and is_ours(text)


def _score(wanted: Sequence[str], text: str, context: str = "") -> float:
    """The share of the wanted words that the text has, those of its context counting for less; 0
    if it has none itself (unless its context has all), or only words that go with anything.
    """
    held = set(words.terms(_USER.sub("", text)))
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
