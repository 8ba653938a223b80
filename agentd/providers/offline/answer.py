"""Which lines of memory answer a question, and the words for it. Pure.

A line answers when it holds enough of the question's telling words, and at least one that is not a
word for anything. A fact that surely answers is the answer; else lines are quoted with their places,
facts before notes before conversations and newer before older, so that the reader can judge them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from agentd.core.workspace import FACTS_PATH
from agentd.providers.offline.intent import ForgetIntent, intent
from agentd.providers.offline.language import word_forms as words
from agentd.providers.offline.language.claims import Claim, claims, claims_of
from agentd.providers.offline.language.sentences import is_question, order, split, without_order
from agentd.providers.offline.phrases import (
    CLOSEST,
    FOUND,
    HEARD,
    NOTHING,
    OLDER,
    OTHERWISE,
    TOLD,
    is_ours,
)

# Above each piece stands `memory/2026-11-21.md:1-3 (2026-11-21, notes)`, then the piece between fences.
_HEAD = re.compile(
    r"(?P<path>\S.{0,400}):(?P<first>\d{1,9})-(?P<last>\d{1,9})"
    r"(?: \((?:(?P<date>[\d-]{10}), )?(?:notes|sessions)(?P<older>; older, see \S.{0,420})?\))?"
)
_BAR = re.compile(r"(`{3,})text")
_SPOKEN = re.compile(r"\[(user|assistant)\] ")
_STAMP = re.compile(r"\s*(?:[-*+]\s+)?(?:\[\d{2}:\d{2}\]\s*)?(?:\[[ xX]?\]\s+)?")
_ENTRY = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\S")
_TICKED = re.compile(r"\s*[-*+]\s+\[[xX]\]")
_REMARK = re.compile(r"(?<!\s)\s*+<!--[^<>]{0,200}-->")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*---+\s*\Z")
_DEPTH, _PARENT_CHARS = 6, 200  # of the entries that a line stands under


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line of memory. `text` is without list marks and remarks; `speaker` is "user" or
    "assistant" in transcripts, "" in notes; `date` is ISO, "" if the file has none; `context` is what
    the line stands under: the file's name, the heading, the entries it is part of.
    """

    place: str  # `memory/2026-11-21.md:3`
    text: str
    date: str = ""
    speaker: str = ""
    number: int = 0
    context: str = ""
    is_heading: bool = False
    is_entry: bool = False  # of a list
    is_ticked: bool = False
    is_foreign: bool = False
    is_older: bool = False  # something newer says the same, or otherwise

    @property
    def is_fact(self) -> bool:
        """Whether it stands on the page of facts."""
        return self.place.startswith(FACTS_PATH)

    @property
    def is_note(self) -> bool:
        """Whether it stands in a file rather than in a transcript."""
        return not self.speaker


@dataclass(frozen=True, slots=True)
class _Block:
    path: str
    first: int
    last: int
    date: str
    body: tuple[str, ...]
    is_older: bool = False


def lines(output: str) -> tuple[AnswerLine, ...]:
    """What `memory_search` or `memory_read` has answered, as lines that name their place, in its order; none
    without words.
    """
    return tuple(line for block in _blocks(output) for line in _lines_of(block) if line.text)


def _blocks(output: str) -> Iterator[_Block]:
    rows = iter(output.split("\n"))
    head: re.Match[str] | None = None
    for row in rows:
        bar = _BAR.fullmatch(row)
        if head is None or bar is None:
            head = _HEAD.fullmatch(row)
            continue
        body: list[str] = []
        for inner in rows:
            if inner == bar[1]:
                break
            body.append(inner)
        yield _Block(
            head["path"],
            int(head["first"]),
            int(head["last"]),
            head["date"] or "",
            tuple(body),
            head["older"] is not None,
        )
        head = None


def _lines_of(block: _Block) -> Iterator[AnswerLine]:
    if block.path.startswith("sessions/"):
        yield from _spoken(block)
        return
    above = _Above(block.path)
    for number, raw in enumerate(block.body, block.first):
        text = _REMARK.sub("", _STAMP.sub("", raw, count=1)).strip()
        yield AnswerLine(
            f"{block.path}:{number}",
            text,
            block.date,
            number=number,
            context=above.of(raw, text),
            is_heading=_HEADING.match(raw) is not None,
            is_entry=_ENTRY.match(raw) is not None,
            is_ticked=_TICKED.match(raw) is not None,
            is_foreign="origin=untrusted" in raw or block.path.startswith("@"),
            is_older=block.is_older,
        )


class _Above:
    """What lines stand under, while they go by."""

    def __init__(self, path: str) -> None:
        self._name = path.rsplit("/", 1)[-1].removesuffix(".md")
        self._heading = ""
        self._parents: list[tuple[int, str]] = []

    def of(self, raw: str, text: str) -> str:
        """The context of the next line."""
        if _HEADING.match(raw):
            self._heading, self._parents = text, []
            return self._name
        indent = len(raw) - len(raw.lstrip())
        while self._parents and self._parents[-1][0] >= indent:
            self._parents.pop()
        context = " ".join((self._name, self._heading, *(parent for _, parent in self._parents)))
        if text and len(self._parents) < _DEPTH:
            self._parents.append((indent, text[:_PARENT_CHARS]))
        return context


def _spoken(block: _Block) -> Iterator[AnswerLine]:
    """Lines of a transcript. Rows without words are not shown, so only the ends of a span, or a span
    that shows all its rows, name a row exactly.
    """
    starts = sum(1 for raw in block.body if _SPOKEN.match(raw))
    is_exact = starts == block.last - block.first + 1
    speaker, row = "user", -1
    for raw in block.body:
        if match := _SPOKEN.match(raw):
            speaker, row = match[1], row + 1
        place = f"{block.path}:{block.first}-{block.last}"
        if is_exact or row <= 0:
            place = f"{block.path}:{block.first + max(0, row)}"
        elif row == starts - 1:
            place = f"{block.path}:{block.last}"
        text = raw[match.end() :] if match else raw
        number = block.first + max(0, row)
        yield AnswerLine(place, text.strip(), block.date, speaker, number, is_older=block.is_older)


_Value = tuple[tuple[str, str], str]  # of what, and which

_ENOUGH, _SURE, _NEARLY_ALL = 0.5, 0.6, 0.8
_ENOUGH_PAIRS = 0.3  # letter pairs across word borders match nothing
_SAME = 0.05  # scores this near are equal
_ASKED_FOR = 1.5  # above all scores: the line says the very thing that is asked for
_AROUND = 0.8  # of a word that stands only above the line
_NEAR = 0.2  # below the best: told as well
_OTHERS = 2
_CHARS = 400  # shown of one line
_USER = re.compile(r"\bthe user(?:['’]s)?(?!\w)", re.IGNORECASE)  # so facts are told
_PAST = re.compile(
    r"\b(?:before|earlier|previous(?:ly)?|former(?:ly)?|used to|back then|(?<!how )old|früher|vorher|damals)\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"Until \d{4}-\d\d-\d\d: ")  # begins a fact that holds no more
_NOW = r"(?: (?:now|currently|right now|at the moment|these days|jetzt|derzeit|gerade))?"
_STILL = r"(?:(?:now|currently|still) )?"
# Questions that ask for one relation of the user and for nothing else.
_ASKED = {
    ("name",): re.compile(
        r"\bwhat(?: is|'s) my (?:full |real )?name|\bwie (?:heiße ich|ist mein name)"
    ),
    ("employer",): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}work{_NOW}|\bwhere (?:am i|i am|i'm) {_STILL}(?:working|employed){_NOW}"
        rf"|\b(?:who|what company|which company) (?:do )?i {_STILL}work (?:for|at){_NOW}"
        rf"|\b(?:what|who|which)(?: is|'s) my (?:current )?(?:employer|company)|\bwo (?:arbeite ich|ich{_NOW} arbeite){_NOW}"
    ),
    ("home", "address"): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}live{_NOW}|\bwhere (?:am i|i am|i'm) {_STILL}(?:living|based){_NOW}"
        rf"|\bwo (?:(?:wohne|lebe) ich|ich{_NOW} (?:wohne|lebe)){_NOW}"
    ),
}


@dataclass(frozen=True, slots=True)
class _Match:
    line: AnswerLine
    text: str
    score: float

    @property
    def key(self) -> tuple[float, bool, bool, str, int]:
        """Orders matches, the best last."""
        line = self.line
        score = self.score - (_NEAR if line.is_older else 0)
        return (round(score / _SAME), line.is_fact, line.is_note, line.date, line.number)


def answer(
    question: str, found: Sequence[AnswerLine], facts: Sequence[str] = (), heard: Sequence[str] = ()
) -> str:
    """The facts that surely answer, else the best lines, each with its place, or that there are none.
    `found` is what a search has found, `facts` what the prompt tells, `heard` what the user has said in
    this conversation: what it says otherwise goes first, since it is not learnt yet; what a fact said that
    holds no more was learnt, and something later has taken its place.
    """
    asks_past = _PAST.search(question) is not None
    lines = list(found) if asks_past else _holding(found)
    there = {words.normal(line.text) for line in lines if line.is_fact}
    lines += [AnswerLine(FACTS_PATH, fact) for fact in facts if words.normal(fact) not in there]
    if asks_past and any(map(_is_past, lines)):
        lines = [line for line in lines if _is_past(line)]
    best = _best(_PAST.sub("", question), lines)
    sure = [m for m in best if m.line.is_fact and _is_sure(question, m)] if not asks_past else []
    if sure and sure[0] is best[0]:
        over = {value for line in found if _is_past(line) for value in _values(line.text)}
        if later := _contradiction(sure[0].text, heard, over):
            return f"{HEARD} “{later}”\n{OTHERWISE} {_with_place(sure[0])}"
        told = [
            f"{TOLD} {_with_place(sure[0])}",
            *(f"Also: {_with_place(match)}" for match in sure[1:]),
        ]
        return "\n".join(told)
    if not best:
        return NOTHING
    top, *others = best
    title = OLDER if top.line.is_older else FOUND if top.score >= _SURE else CLOSEST
    rest = (f"{'Older' if m.line.is_older else 'Also'}: {_quote_match(m)}" for m in others)
    return "\n".join([f"{title} {_quote_match(top)}", *rest])


def about(topic: str, found: Sequence[AnswerLine]) -> tuple[AnswerLine, ...]:
    """Every line that the topic's words are in, best first."""
    best = sorted(_matches(topic, found), key=lambda m: m.key, reverse=True)
    return tuple({m.line.place: m.line for m in best}.values())


def quote(text: str, place: str) -> str:
    """The text in quotation marks, its place behind it."""
    shown = text if len(text) <= _CHARS else f"{text[:_CHARS].rstrip()} […]"
    return f"“{shown}” ({place})"


def _with_place(match: _Match) -> str:
    return f"{match.text} ({match.line.place})"


def _quote_match(match: _Match) -> str:
    line = match.line
    who = "earlier answer, " if line.speaker == "assistant" else ""
    outside = "text from outside, " if line.is_foreign else ""
    return quote(match.text, f"{who}{outside}{line.place}")


def _best(question: str, found: Sequence[AnswerLine]) -> list[_Match]:
    """What answers, the best first: each said once, as good as the best or nearly."""
    matches = sorted(_matches(question, found), key=lambda m: m.key, reverse=True)
    best = _distinct(matches)
    near = (m for n, m in enumerate(best) if n == 0 or m.score >= best[0].score - _NEAR)
    return list(near)[: 1 + _OTHERS]


def _holding(found: Sequence[AnswerLine]) -> list[AnswerLine]:
    """The lines without facts that hold no more, and without what says the same elsewhere."""
    over = {value for line in found if _is_past(line) for value in _values(line.text)}
    rest = (line for line in found if not _is_past(line))
    return [
        line for line in rest if line.is_fact or not over or over.isdisjoint(_values(line.text))
    ]


def _values(text: str) -> Iterator[_Value]:
    yield from map(_value, claims_of(without_order(_UNTIL.sub("", text))))


def _value(claim: Claim) -> _Value:
    return claim.slot, words.normal(claim.triple.value)


def _is_past(line: AnswerLine) -> bool:
    return line.is_fact and _UNTIL.match(line.text) is not None


def _contradiction(fact: str, heard: Sequence[str], over: Container[_Value]) -> str:
    """What the user last said of the same thing, if it is otherwise, was not asked to be kept, and is not
    `over`.
    """
    wanted = {claim.slot: claim for claim in claims_of(fact)}
    for text in reversed(heard):
        said = [(claim, wanted[claim.slot]) for claim in claims(text) if claim.slot in wanted]
        if said:
            is_same = all(_is_same(new, old) for new, old in said)
            is_over = all(_value(new) in over for new, _ in said)
            return "" if is_same or is_over or order(text) is not None else text.strip()
    return ""


def _is_same(one: Claim, other: Claim) -> bool:
    if not one.is_single and not one.is_denial:
        return True  # another one besides
    same = words.normal(one.triple.value) == words.normal(other.triple.value)
    return same and one.is_denial == other.is_denial


def _relations(question: str) -> tuple[str, ...]:
    """The relations of the user any of which answers a question that asks for nothing else."""
    plain = " ".join(question.casefold().replace("’", "'").split()).rstrip(" ?.!")
    for relations, pattern in _ASKED.items():
        if any(match.end() == len(plain) for match in pattern.finditer(plain)):
            return relations
    return ()


def _says_of_user(text: str, relations: Sequence[str]) -> bool:
    """Whether the text says the user's value of one of these, and not only which it no longer is."""
    found = claims_of(_UNTIL.sub("", text)) if relations else ()
    return any(c.slot in {("user", r) for r in relations} and not c.is_denial for c in found)


def _is_sure(question: str, match: _Match) -> bool:
    """Whether a fact has all words of the question, or nearly all if they tell much."""
    has_all = set(words.terms(question)) <= set(words.terms(match.text))
    return match.score >= (_SURE if has_all else _NEARLY_ALL)


def _matches(question: str, found: Sequence[AnswerLine]) -> list[_Match]:
    wanted = words.terms(question)
    if not wanted:
        return []
    relations = _relations(question)
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
        if is_own and not line.is_foreign and _says_of_user(line.text, relations):
            score = _ASKED_FOR
        if score >= enough:
            matches.append(_Match(line, text, score * (1 if is_own else 0.8)))
    return matches


def _is_noise(line: AnswerLine, text: str) -> bool:
    if line.is_heading or text.endswith(":") or is_question(text):
        return True
    if line.speaker and isinstance(intent(line.text), ForgetIntent):
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
