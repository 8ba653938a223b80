"""Choose the lines of memory that answer a question, and word the answer. Pure.

A line answers when it has enough of the question's telling words, at least one of them specific;
what it states is read a sentence at a time, and the questions in it are no answer. A fact that
surely answers is the whole answer. Otherwise lines are quoted with their places, facts before notes
before conversations and newer before older, so that the reader can judge them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

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

# A result is a line like `memory/2026-11-21.md:1-3 (2026-11-21, notes)`, then the text in a fence.
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
_DEPTH, _PARENT_CHARS = 6, 200  # of the parent entries in a line's context


class AnswerLine(Struct, frozen=True):
    """A line of memory. `text` is without list marks and remarks. `speaker` is "user" or
    "assistant" in transcripts, "" in notes. `date` is ISO, "" if the file has none. `context` is
    the file's name, the heading above the line, and its parent entries.
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
    is_older: bool = False  # a newer line repeats or contradicts it

    @property
    def is_fact(self) -> bool:
        """Whether the line is from the page of facts."""
        return self.place.startswith(FACTS_PATH)

    @property
    def is_note(self) -> bool:
        """Whether the line is from a file rather than a transcript."""
        return not self.speaker


class _Block(Struct, frozen=True):
    path: str
    first: int
    last: int
    date: str
    body: tuple[str, ...]
    is_older: bool = False


def lines(output: str) -> tuple[AnswerLine, ...]:
    """Parse the output of `memory_search` or `memory_read` into lines with their places, in order;
    empty lines are left out.
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
    """Keeps the context of the lines of a file while they are read in order."""

    def __init__(self, path: str) -> None:
        self._name = path.rsplit("/", 1)[-1].removesuffix(".md")
        self._heading = ""
        self._parents: list[tuple[int, str]] = []

    def of(self, raw: str, text: str) -> str:
        """Return the context of the next line, and take that line into the context of those after
        it.
        """
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
    """Yield the lines of a transcript. Rows without words are not shown, so a row's number is exact
    only at the ends of a span, or where the span shows all its rows.
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


_Value = tuple[tuple[str, str], str]  # a claim's slot, and its value

_ENOUGH, _SURE, _NEARLY_ALL = 0.5, 0.6, 0.8
_ENOUGH_PAIRS = 0.3  # letter pairs across word borders match nothing
_SAME = 0.05  # scores this near are equal
_ASKED_FOR = 1.5  # above all other scores: the line states the very relation asked for
_AROUND = 0.8  # of a word that only the line's context has
_NEAR = 0.2  # so far below the best score, a line is quoted as well
_OTHERS = 2
_CHARS = 400  # shown of one line
_USER = re.compile(r"\bthe user(?:['’]s)?(?!\w)", re.IGNORECASE)  # the wording of facts
_PAST = re.compile(
    (
        r"\b(?:before|earlier|previous(?:ly)?|former(?:ly)?|used to|back then|(?<!how )old|früher"
        r"|vorher|damals)\b"
    ),
    re.IGNORECASE,
)
_UNTIL = re.compile(r"Until \d{4}-\d\d-\d\d: ")  # the beginning of an ended fact
_NOW = r"(?: (?:now|currently|right now|at the moment|these days|jetzt|derzeit|gerade))?"
_STILL = r"(?:(?:now|currently|still) )?"
# Questions that ask for one relation of the user and for nothing else.
_ASKED = {
    ("name",): re.compile(
        r"\bwhat(?: is|'s) my (?:full |real )?name|\bwie (?:heiße ich|ist mein name)"
    ),
    ("employer",): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}work{_NOW}|\bwhere (?:am i|i am|i'm) "
        rf"{_STILL}(?:working|employed){_NOW}"
        rf"|\b(?:who|what company|which company) (?:do )?i {_STILL}work (?:for|at){_NOW}"
        r"|\b(?:what|who|which)(?: is|'s) my (?:current )?(?:employer|company)|\bwo (?:arbeite "
        rf"ich|ich{_NOW} arbeite){_NOW}"
    ),
    ("home", "address"): re.compile(
        rf"\bwhere (?:do )?(?:i|we) {_STILL}live{_NOW}|\bwhere (?:am i|i am|i'm) {_STILL}(?:living"
        rf"|based){_NOW}"
        rf"|\bwo (?:(?:wohne|lebe) ich|ich{_NOW} (?:wohne|lebe)){_NOW}"
    ),
}


class _Match(Struct, frozen=True):
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
    """Return the facts that surely answer, else the best lines, each with its place, or a text that
    there are none.

    `found` are the lines of a search, `facts` the sentences in the prompt, `heard` the user's
    earlier messages of this conversation. Where the user has contradicted a fact in `heard`, that
    message goes first, since it is not learnt yet; unless an ended fact says the same, which was
    learnt and later replaced.
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
    """Return every line that matches the topic's words, best first."""
    best = sorted(_matches(topic, found), key=lambda m: m.key, reverse=True)
    return tuple({m.line.place: m.line for m in best}.values())


def quote(text: str, place: str) -> str:
    """Return the text, shortened, in quotation marks, followed by its place."""
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
    """Return the best matches, best first, without repetitions: those nearly as good as the best,
    three at most.
    """
    matches = sorted(_matches(question, found), key=lambda m: m.key, reverse=True)
    best = _distinct(matches)
    near = (m for n, m in enumerate(best) if n == 0 or m.score >= best[0].score - _NEAR)
    return list(near)[: 1 + _OTHERS]


def _holding(found: Sequence[AnswerLine]) -> list[AnswerLine]:
    """Return the lines without ended facts, and without other sentences that state an ended fact's
    value.
    """
    over = {value for line in found if _is_past(line) for value in _values(line.text)}
    rest = [line for line in found if not _is_past(line)]
    if over:
        rest = [line if line.is_fact else _without_values(line, over) for line in rest]
    return [line for line in rest if line.text]


def _without_values(line: AnswerLine, over: Container[_Value]) -> AnswerLine:
    pieces = list(split(line.text))
    kept = [piece for piece in pieces if not any(value in over for value in _values(piece))]
    return line if len(kept) == len(pieces) else replace(line, text=" ".join(kept))


def _values(text: str) -> Iterator[_Value]:
    yield from map(_value, claims_of(without_order(_UNTIL.sub("", text))))


def _value(claim: Claim) -> _Value:
    return claim.slot, words.normal(claim.triple.value)


def _is_past(line: AnswerLine) -> bool:
    return line.is_fact and _UNTIL.match(line.text) is not None


def _contradiction(fact: str, heard: Sequence[str], over: Container[_Value]) -> str:
    """Return the user's last message about the same slot as the fact; "" if it agrees, was an order
    to remember, or its value is `over`.
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
    """Return the relations of the user any of which answers the question; () unless the question
    asks for such a relation alone.
    """
    plain = " ".join(question.casefold().replace("’", "'").split()).rstrip(" ?.!")
    for relations, pattern in _ASKED.items():
        if any(match.end() == len(plain) for match in pattern.finditer(plain)):
            return relations
    return ()


def _says_of_user(text: str, relations: Sequence[str]) -> bool:
    """Whether a sentence of the text states the user's value of one of the relations; a denial
    alone does not count.
    """
    pieces = split(_UNTIL.sub("", text)) if relations else ()
    found = (claim for piece in pieces for claim in claims_of(piece))
    return any(c.slot in {("user", r) for r in relations} and not c.is_denial for c in found)


def _is_sure(question: str, match: _Match) -> bool:
    """Whether a fact's score is high enough: `_SURE` if the fact has all words of the question,
    else `_NEARLY_ALL`.
    """
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
        text = _statements(line)
        if not text:
            continue
        pieces = list(split(text))
        score = max(_score(wanted, piece, line.context) for piece in (text, *pieces))
        if len(text) > _CHARS:
            text = max(pieces, key=lambda piece: _score(wanted, piece), default=text)
        is_own = line.speaker != "assistant"
        if is_own and not line.is_foreign and _says_of_user(text, relations):
            score = _ASKED_FOR
        if score >= enough:
            matches.append(_Match(line, text, score * (1 if is_own else 0.8)))
    return matches


def _statements(line: AnswerLine) -> str:
    """Return the text of the line without its questions; "" if nothing in it can be an answer."""
    text = without_order(line.text)
    if line.is_heading or text.endswith(":"):
        return ""
    if line.speaker and isinstance(intent(line.text), ForgetIntent):
        return ""
    if line.speaker == "assistant" and is_ours(text):
        return ""
    pieces = list(split(text))
    told = [piece for piece in pieces if not is_question(piece)]
    return text if len(told) == len(pieces) and pieces else " ".join(told)


def _score(wanted: Sequence[str], text: str, context: str = "") -> float:
    """Return the weighted share of the wanted words that the text has; words that only its context
    has count for less. The score is 0 if the text has none of them (unless the context has all), or
    only unspecific ones.
    """
    held = set(words.terms(_USER.sub("", text)))
    around = set(words.terms(context)) if context else set()
    strong = [t for t in wanted if words.weight(t) == 1]
    is_on_topic = bool(held.intersection(wanted)) or around.issuperset(wanted)
    if not is_on_topic or (strong and not (held | around).intersection(strong)):
        return 0.0
    score = sum(words.weight(t) * _share(t, held, around) for t in wanted)
    score /= sum(map(words.weight, wanted))
    # “What is my name?” has no specific word: only a short line can be its answer.
    return score if strong else score * min(1.0, 2 / (1 + len(held)))


def _share(term: str, held: set[str], around: set[str]) -> float:
    return 1.0 if term in held else _AROUND if term in around else 0.0


def _distinct(matches: Sequence[_Match]) -> list[_Match]:
    """Return the matches without those whose text a better one contains, or the other way round."""
    kept: list[_Match] = []
    said: list[str] = []
    for match in matches:
        normal = words.normal(match.text)
        if not any(normal in other or other in normal for other in said):
            kept.append(match)
            said.append(normal)
    return kept
