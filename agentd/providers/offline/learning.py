"""Extracts facts by rules, for the request that asks what the user has said about himself. Pure.

The request lists known facts as `[k3f9 since 2026-01-02] sentence` and a conversation as `[1 user
2026-05-04 09:40] text`. The answer is a JSON array of operations, each with the user's words that
support it. The rules miss much, and leave out what is not certain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.fact import Category, Triple
from agentd.core.prompt import Prompt
from agentd.providers.offline.conversation import (
    FinalText,
    Reply,
    entries,
    fence_content,
    own_words,
)
from agentd.providers.offline.language.calendar import WHEN
from agentd.providers.offline.language.claims import (
    LONGEST,
    Claim,
    claims,
    claims_of,
    slot,
    thing,
)
from agentd.providers.offline.language.clauses import is_same, saying
from agentd.providers.offline.language.relations import canonical, is_single, normalise
from agentd.providers.offline.language.rule import NAME
from agentd.providers.offline.language.sentences import Sentence, bare, order, sentences
from agentd.providers.offline.language.statements import is_retraction, is_serious
from agentd.providers.offline.language.word_forms import telling, terms

KNOWN, CONVERSATION = "known facts", "conversation"
_KNOWN_HEAD = re.compile(
    r"\[(?P<id>[^\s\[\]]{1,40})(?: since (?P<since>[\d-]{10}))?\]\s?(?P<text>.*)"
)
_SAID_HEAD = re.compile(
    r"\[(?P<number>\d{1,9}) (?P<who>user|agent) (?P<day>\d{4}-\d\d-\d\d)(?: "
    r"[\d:]{4,8})?\]\s?(?P<text>.*)"
)
_LEFT_OUT = "[…]"  # stands for the parts of a message that the request leaves out
_KEPT_CHARS, _KEPT_SENTENCES = 500, 10  # limits of what an order to remember keeps
_QUOTED_WORDS = 3  # a shorter quote proves little
_KEEP = re.compile(
    r"(?:remember|memori[sz]e|keep in mind|(?:don['’]?t|do not|never) forget|(?:make|take) a note"
    r"|save|store"
    r"|merk|vergiss nicht|denk daran|souviens|rappelle|retiens|recuerda)",
    re.IGNORECASE,
)
_ALL_OF_IT = re.compile(r"[^.!?\n]{0,60}:\s*\n?")  # “remember this: …”: all that follows
_ORDERS = re.compile(
    r"(?:please |bitte |from now on,? |in future,? )?(?:always|never|don't|do not|use|answer|reply"
    r"|call me|write|speak"
    r"|stop|avoid|ask me|tell me|immer|nie|niemals|antworte|nenn|schreib|benutze|verwende|sprich"
    r"|frag)\b",
    re.IGNORECASE,
)
_MINE = re.compile(r"(?:my|our)\b(?=\s)", re.IGNORECASE)
_OWN = re.compile(r"\b(?:i|i'm|i've|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
_SOMEONE = r"(?P<n>[a-zäöü]+(?:[ -](?:friend|in-law|pig|teacher))?)"
# A question of the agent, the sentence that a short answer to it stands for, and the answer's form.
_ASKED: Final = (
    ((
        rf"what(?:'s| is) your {_SOMEONE}(?:'s name| called)|what(?:'s| is) the name of your "
        rf"{_SOMEONE}|what(?:'s| is) (?:his|her) name, your {_SOMEONE}|how is your {_SOMEONE} "
        r"called"
        ), "My {n} is called {v}.", NAME),
    ((
        rf"wie hei(?:ß|ss)t (?P<m>deine|dein|ihre|ihr|eure|euer) {_SOMEONE}"
        ), "Mein {n} heißt {v}.", NAME),
    (r"what(?:'s| is) your name|wie hei(?:ß|ss)t du|wie ist dein name", "My name is {v}.", NAME),
    ((
        r"where do you live(?: now)?|(?:which|what) (?:city|town) do you live in|wo wohnst du|in "
        r"welcher stadt wohnst du"
        ), "I live in {v}.", NAME),
    ((
        r"where do you work(?: now)?|who do you work for|wo arbeitest du|bei wem arbeitest du"
        ), "I work at {v}.", NAME),
    (r"how old are you|wie alt bist du", "I am {v} years old.", r"(?P<v>[1-9]\d)"),
    ((
        r"when(?:'s| is) your birthday|wann hast du geburtstag"
        ), "My birthday is {v}.", rf"(?P<v>{WHEN})"),
    ((
        r"what(?:'s| is) your favou?rite (?P<n>[a-z]+)"
        ), "My favourite {n} is {v}.", r"(?P<v>[^\W\d_][\w'-]*(?: [\w'-]+)?)"),
)  # fmt: skip
_ANSWERS = (
    r"(?:(?:she|he|it|they)(?:'s| is|'re| are)(?: called| named)? |(?:her|his|its|my) (?:name"
    r"|birthday)(?:'s| is) |(?:sie|er) hei(?:ß|ss)t "
    r"|ich hei(?:ß|ss)e |i(?:'m| am) |in |at |bei |on |am )?"
)
_NO_ANSWER = re.compile(
    r"(?:yes|no|nope|yeah|why|guess|secret|classified|private|nobody|none|nothing|unknown|dunno"
    r"|later|skip|pass"
    r"|stop|sorry|sure|maybe|hm+|ok(?:ay)?|well|good|fine|great|thanks|never|wait|what|who|ask|idk"
    r"|there|here"
    r"|ja|nein|nö|egal|keine?|geheim|rate|niemand|später|warum|danke|weiter|gut|klar|nichts"
    r"|vergiss|home|work)\b",
    re.IGNORECASE,
)


class _Message(Struct, frozen=True):
    number: int
    is_users: bool
    day: date | None
    text: str


class _Known(Struct, frozen=True):
    """A known fact: its id, its text, and the triples that the rules find in that."""

    id: str
    text: str
    triples: tuple[Triple, ...]


class _Learnt(Struct, frozen=True):
    """A fact from a message: the sentence to keep, its triple if there is one, and the user's words
    that state it.
    """

    message: int
    content: str
    category: Category
    quote: str
    triple: Triple | None = None
    claim: Claim | None = None
    asked: bool = False  # the user ordered to remember it

    @property
    def is_single(self) -> bool:
        """Whether the fact replaces what is known in the same slot."""
        if self.claim is not None:
            return self.claim.is_single
        return self.triple is not None  # `thing` gives triples of unique things only


def reply(prompt: Prompt) -> Reply:
    """Return a JSON array of operations for what the user says of himself in the request's
    conversation.
    """
    text = own_words(prompt)
    known = [
        _Known(head["id"], body, _triples(body))
        for head, body in entries(fence_content(text, KNOWN), _KNOWN_HEAD)
    ]
    shown = [
        _Message(
            int(head["number"]),
            head["who"] == "user",
            _day(head["day"]),
            body.replace(_LEFT_OUT, "\n"),
        )
        for head, body in entries(fence_content(text, CONVERSATION), _SAID_HEAD)
    ]
    found = _operations(_in_turn(_learnt(shown)), known)
    found += _repeated_facts(shown, known, found)
    return FinalText(json.dumps(found, ensure_ascii=False))


def _repeated_facts(
    shown: Sequence[_Message], known: Sequence[_Known], found: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return `same` operations for known facts that a message repeats beside other things, where
    nothing else was found in it. They record where the fact was said, for the case that it is to be
    forgotten.
    """
    names = {term for fact in known for triple in fact.triples for term in terms(triple.value)}
    passed = {*(one["message"] for one in found), *_retracted(shown)}
    again: list[dict[str, Any]] = []
    for message in (one for one in shown if one.is_users and one.number not in passed):
        if not is_serious(message.text):
            continue
        for sentence in sentences(message.text[:LONGEST]):
            said = sentence.text
            if "?" in said or len(said) > _KEPT_CHARS or names.isdisjoint(terms(said)):
                continue
            for clause, triple in saying(said, lambda one: bool(_ids_of(one, known))):
                if len(clause.split()) >= _QUOTED_WORDS:
                    quote = {"message": message.number, "quote": clause}
                    again.append({"op": "same", "ids": _ids_of(triple, known)[:1], **quote})
    return again


def _ids_of(triple: Triple, known: Sequence[_Known]) -> list[str]:
    """Return the ids of known facts that say the same."""
    return [fact.id for fact in known if any(is_same(triple, other) for other in fact.triples)]


def _triples(text: str) -> tuple[Triple, ...]:
    found = tuple(claim.triple for claim in claims_of(text))
    named = None if found else thing(text)
    return (named,) if named else found


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _learnt(shown: Sequence[_Message]) -> Iterator[_Learnt]:
    """Yield the facts of the user's messages, leaving out messages that the next one retracts."""
    gone = _retracted(shown)
    for place, message in enumerate(shown):
        if not message.is_users or message.number in gone:
            continue
        if place and not shown[place - 1].is_users:
            yield from _facts_of_answer(shown[place - 1].text, message)
        yield from _facts_of(message)


def _retracted(shown: Sequence[_Message]) -> frozenset[int]:
    """Return the numbers of the user's messages that the user's next message retracts."""
    said = [message for message in shown if message.is_users]
    return frozenset(a.number for a, b in pairwise(said) if is_retraction(b.text))


def _facts_of(message: _Message) -> Iterator[_Learnt]:
    """Yield the facts of one message: sentences that it asks to remember, and claims that the rules
    recognise.
    """
    kept: set[int] = set()  # ends of sentences already yielded
    for sentence in _to_keep(message.text):
        kept.add(sentence.end)
        yield from _claims_or_sentence(sentence, message)
    for claim in claims(message.text, message.day):
        if claim.end not in kept:
            yield _of_claim(claim, message, _quote(message.text, claim.start, claim.end))


def _to_keep(text: str) -> Iterator[Sentence]:
    """Yield the sentences that the user wants remembered, without the words of the order."""
    found = 0
    goes_on = False
    for sentence in sentences(text[: _KEPT_CHARS * _KEPT_SENTENCES]):
        if found >= _KEPT_SENTENCES or len(sentence.text) > _KEPT_CHARS:
            return
        asked = order(sentence.text) if _KEEP.match(bare(sentence.text)) else None
        if asked and not asked.startswith("Remember "):
            at = (
                sentence.start + sentence.text.rindex(asked)
                if asked in sentence.text
                else sentence.start
            )
            found += 1
            yield Sentence(asked, at, sentence.end)
        elif (
            goes_on
            and asked is None
            and len(telling(sentence.text)) > 1
            and "?" not in sentence.text
        ):
            found += 1
            yield sentence
        if asked is not None and (asked == "" or _ALL_OF_IT.match(sentence.text)):
            goes_on = True


def _claims_or_sentence(sentence: Sentence, message: _Message) -> Iterator[_Learnt]:
    """Yield the sentence's claims if they say all of it, else the sentence as it is."""
    words = sentence.text.rstrip()
    quote = _quote(message.text, sentence.start, sentence.end)
    found = claims(words, message.day, is_meant=True)
    if found and all(claim.is_all for claim in found):
        for claim in found:
            yield _of_claim(claim, message, quote, asked=True)
        return
    category = Category.INSTRUCTION if _ORDERS.match(words) else Category.PERSONAL
    yield _Learnt(message.number, _of_the_user(words), category, quote, thing(words), asked=True)


def _of_the_user(text: str) -> str:
    """Replace “my” at the beginning by “The user's”, unless the rest mentions the speaker again."""
    mine = _MINE.match(text)
    if mine is None or _OWN.search(text, mine.end()):
        return text
    return f"The user's{text[mine.end() :]}"


def _of_claim(claim: Claim, message: _Message, quote: str, *, asked: bool = False) -> _Learnt:
    return _Learnt(message.number, claim.text, claim.category, quote, claim.triple, claim, asked)


def _facts_of_answer(question: str, message: _Message) -> Iterator[_Learnt]:
    """Yield the fact in a short answer to the question that the agent has just asked."""
    text = message.text.strip()
    asked = [s.text for s in sentences(question[-1000:]) if s.text.endswith("?")]
    if len(asked) != 1 or len(text) > 80 or "\n" in text or _NO_ANSWER.match(text):
        return
    for pattern, sentence, value in _ASKED:
        form = re.search(
            rf"(?:{_number_groups(pattern)})\?\Z", asked[0].replace("’", "'"), re.IGNORECASE
        )
        given = re.fullmatch(
            rf"{_ANSWERS}{value}[.!]{{0,3}}", text.replace("’", "'"), re.IGNORECASE
        )
        if form is None or given is None:
            continue
        names = {key[0]: word for key, word in form.groupdict().items() if word}
        spoken = sentence.format(n=names.get("n", ""), v=given["v"])
        found = claims(spoken, message.day, is_meant=True)
        if len(found) == 1:
            yield _of_claim(found[0], message, text)
        return


def _number_groups(pattern: str) -> str:
    count = iter(range(1, 99))
    return re.sub(r"\(\?P<n>", lambda _: f"(?P<n{next(count)}>", pattern)


def _quote(text: str, start: int, end: int) -> str:
    """Return the text between `start` and `end`, or the whole message where those are too few
    words.
    """
    if len(text[start:end].split()) >= _QUOTED_WORDS:
        return text[start:end]
    whole = text.strip()
    return whole if len(whole) <= _KEPT_CHARS and "\n" not in whole else text[start:end]


def _in_turn(learnt: Iterator[_Learnt]) -> list[list[_Learnt]]:
    """Group the facts that concern the same thing, in the order of being said; the last of a group
    holds.
    """
    found: dict[object, list[_Learnt]] = {}
    for one in learnt:
        key: object = normalise(one.content)
        if one.triple is not None:
            subject, relation = slot(one.triple)
            value = "" if one.is_single or one.claim is None else normalise(one.triple.value)
            key = (subject, relation, value)
        said = found.pop(key, [])
        found[key] = [*(before for before in said if not _repeats(one, before)), one]
    return list(found.values())


def _repeats(one: _Learnt, before: _Learnt) -> bool:
    """Whether `one` says the same as `before`."""
    if normalise(one.content) == normalise(before.content):
        return True
    return one.triple is not None and before.triple is not None and _says(one.triple, before.triple)


def _operations(
    learnt: Sequence[Sequence[_Learnt]], known: Sequence[_Known]
) -> list[dict[str, Any]]:
    """Return the operations for the groups, in view of the known facts. A value that was said and
    changed again is added first, so that it is known as a former one.
    """
    found: list[dict[str, Any]] = []
    last = [said[-1] for said in learnt]
    for *before, one in learnt:
        changed: list[str] = []
        for earlier in before:
            if _is_negative(earlier):  # may end a known fact
                found += _operation(earlier, known, [*last, earlier], changed)
            else:
                found.append(_as_json("add", earlier, ()))
                changed.append(f"#{len(found)}")
        found += _operation(one, known, last, changed)
    return found


def _is_negative(one: _Learnt) -> bool:
    """Whether the fact denies something, or ends it."""
    return one.claim is not None and (one.claim.is_ending or one.claim.is_denial)


def _operation(
    one: _Learnt, known: Sequence[_Known], learnt: Sequence[_Learnt], changed: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the operations for the last fact of a group. `changed` refers to earlier operations
    that this fact replaces.
    """
    if same := [fact for fact in known if _is_same(one, fact)]:
        plainest = min(same, key=lambda fact: len(fact.text))
        yield _as_json("same", one, [plainest.id])
        if changed:
            yield _as_json("replace", replace(one, content=plainest.text), changed)
        return
    old = [*_over(one, known, learnt), *changed]
    if old and _is_negative(one):
        yield _as_json("end", one, old)
    elif one.claim is None or not one.claim.is_ending or one.asked:
        yield _as_json("replace" if old else "add", one, old)


def _is_same(one: _Learnt, fact: _Known) -> bool:
    if normalise(one.content) == normalise(fact.text):
        return True
    return one.triple is not None and any(_says(one.triple, triple) for triple in fact.triples)


def _says(one: Triple, other: Triple) -> bool:
    is_denied = canonical(one.relation) == canonical(other.relation)
    return is_denied and slot(one) == slot(other) and normalise(one.value) == normalise(other.value)


def _over(one: _Learnt, known: Sequence[_Known], learnt: Sequence[_Learnt]) -> list[str]:
    """Return the ids of known facts that `one` ends; none where several values of a relation hold
    at once and it is not clear which of them is replaced.
    """
    over = [fact for fact in known if _is_over(one, fact, learnt)]
    triples = [t for fact in over for t in fact.triples if _contradicts(one, t)]
    values = {normalise(triple.value) for triple in triples}
    if len(values) > 1 and not all(is_single(triple.relation) for triple in triples):
        return []
    return [fact.id for fact in over]


def _is_over(one: _Learnt, fact: _Known, learnt: Sequence[_Learnt]) -> bool:
    """Whether the known fact ends when `one` holds. A fact of several triples ends only if all its
    others are said again in this conversation.
    """
    said = [other.triple for other in learnt if other.triple is not None]
    gone = [triple for triple in fact.triples if _contradicts(one, triple)]
    rest = (triple for triple in fact.triples if triple not in gone)
    return bool(gone) and all(any(_says(other, triple) for other in said) for triple in rest)


def _contradicts(one: _Learnt, triple: Triple) -> bool:
    if one.triple is None or slot(one.triple) != slot(triple):
        return False
    mine, other = normalise(one.triple.value), normalise(triple.value)
    if canonical(one.triple.relation) != canonical(triple.relation):
        return mine == other or other.startswith(f"{mine} ")
    return one.is_single


def _as_json(op: str, one: _Learnt, ids: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "op": op,
        "content": one.content,
        "category": str(one.category),
        "message": one.message,
        "quote": one.quote,
    }
    if ids:
        found["ids"] = list(ids)
    if one.triple is not None:
        triple = one.triple
        found |= {"subject": triple.subject, "relation": triple.relation, "value": triple.value}
    if one.claim is not None and one.claim.until is not None:
        found["valid_to"] = one.claim.until.isoformat()
    return found
