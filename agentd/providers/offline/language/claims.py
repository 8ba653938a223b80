"""Reads by rules what a user claims about himself in his own words. Pure.

Precision comes first. A sentence counts only if a rule matches it from its first word. Questions,
suppositions, jokes, quotes, code and whatever follows “translate:” or “she wrote:” give no claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.fact import Category, Triple
from agentd.providers.offline.language import english, german, statements
from agentd.providers.offline.language.calendar import last_day, with_date
from agentd.providers.offline.language.relations import canonical, ends, is_single, normalise
from agentd.providers.offline.language.rule import Rule
from agentd.providers.offline.language.sentences import Sentence, own_words, sentences
from agentd.providers.offline.language.statements import (
    core,
    is_serious,
    is_statement,
    leads_elsewhere,
    without_openings,
)

LONGEST = 10_000  # characters read of a message; a longer one is not typed

_RULES = (*english.RULES, *german.RULES)
_TOLD_RULES = (*_RULES, *english.TOLD, *german.TOLD)
_GERMAN = frozenset((*german.RULES, *german.TOLD))
_TRANSLATED = (
    "diet",
    "no longer diet",
    "allergic to",
    "no longer allergic to",
    "does not eat",
    "does not drink",
    "likes",
    "dislikes",
    "preference between {pair}",
)
# Clauses with a subject of their own.
_CLAUSE = re.compile(
    r"(?:;|,)?(?<!\s)\s++(?:and|but|und|aber)\s++(?=(?:i|i'm|i've|my|we|our|he|she|it|they|ich"
    r"|mein|meine|wir|er|sie|es)\s)"
    r"|;\s++|,\s++(?=(?:i|i'm|i've|my|we|our|he|she|it|they|ich|mein|meine|wir)\s)",
    re.IGNORECASE,
)
_OWN_CLAUSE = re.compile(r"(?:i|i'm|i've|we|we're|ich|wir)\b", re.IGNORECASE)
_MOVED = re.compile(
    r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?:moved|got married|changed jobs)(?: "
    r"house| again)?|(?:wir sind|ich bin) (?:gerade )?umgezogen"
    r"|i(?:'m| am) {0,1}(?-i:[A-Z])[a-zà-ÿ]+",
    re.IGNORECASE,
)
# “I live in Rome and work at …”: one subject for two verbs.
_SUBJECT = re.compile(
    r"(?P<who>i|we|ich|wir)(?:'m| am| bin| now| also| just| recently)?(?: (?:quit|left|moved|live"
    r"|work|study|joined|use|drive|speak"
    r"|play|have|prefer|wohne|wohnen|lebe|arbeite|heiße|komme))\b|(?P<mine>(?:my|our|meine?"
    r"|unsere?|unser) [\w-]+(?: (?-i:[A-ZÀ-Þ])[\w'-]+)?)"
    r"(?='s (?:called|named|name)| (?:is|lives|works|heißt|wohnt|arbeitet)\b)",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"(?P<and>,? (?:and|und) )(?=(?:(?:now|currently|also|still|jetzt) )?"
    r"(?:work|live|use|drive|moved|joined|speak|play|study|prefer|am|arbeite|wohne|lebe|nutze|bin"
    r"|lives|works|is|wohnt|lebt|arbeitet|heißt)\s)",
    re.IGNORECASE,
)
_DEPENDS = re.compile(
    r"\b(?:to|will|can|can't|won't|must|going|gonna|let|need|do|don't|did|didn't|never|not|who"
    r"|which|that"
    r"|he|she|they|people|zu|werde|kann|muss|soll|nicht|want|wants)\b",
    re.IGNORECASE,
)
_NAMES_HERE = re.compile(
    r" (?:is |')?(?:s )?(?:called|named|name is|heißt) (?P<name>(?-i:[A-ZÀ-Þ])[\w'-]+)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\A(?:to it|so|not|none|nothing|something|anything|everything|everyone|someone|anyone|nobody"
    r"|stuff"
    r"|things?|ones?|there|here|where|how|what|when|why|whatever|sure|yes|no|both|all|either"
    r"|neither|more"
    r"|less|another|such|same|too|fine|good|bad|ok|okay)\b"
    r"|\b(?:i|i'm|you|your|yours|it|its|it's|that|that's|this|these|those|he|she|him|his|her|them"
    r"|they|their|es|dich|dir|du|ihn|dies)\b|\bnot\Z",
    re.IGNORECASE,
)
_LIST = re.compile(r",? (?:and|or|und|oder) (?:(?:a little|a bit of|some|fluent) )?|, ")
_CHANGES = re.compile(
    (
        r"\b(?:now|actually|correction|renamed|jetzt|eigentlich|sondern|korrektur)\b|, (?:not"
        r"|nicht)\b"
        r"|\A(?:no|nein|doch)\b"
    ),
    re.IGNORECASE,
)
_BESIDES = re.compile(r"\b(?:also|as well|too|auch|außerdem|zusätzlich)\b", re.IGNORECASE)
_SPOKEN = {"is": "am", "has": "have", "does": "do", "goes": "go", "studies": "study", "was": "was"}
_TOLD = re.compile(
    r"(?:the )?user (?P<how>(?:(?:no longer|never|now|also|always|currently) )?)(?P<verb>[a-z]+)",
    re.IGNORECASE,
)
# “The boiler code is 4417”: a unique thing and its number or name.
_A_THING = re.compile(
    r"(?:(?:the )?user's|my|our|the) (?P<n>(?-i:[a-z])[\w-]*(?: (?!of\b|for\b|in\b|at\b"
    r"|on\b)[\w-]+){0,2}?) (?:is(?: now)?(?: called| named)?|=|was changed to)"
    r" (?P<v>\S*\d\S*(?: \S*\d\S*){0,3}?|(?-i:[A-ZÀ-Þ])[\w'&+./-]*(?: "
    r"(?-i:[A-ZÀ-Þ\d])[\w'&+./-]*){0,3}?)(?: now)?[.!]*",
    re.IGNORECASE,
)
# Things of which there are several, at once or in turn.
_SEVERAL = re.compile(
    r".*\b(?:meeting|appointment|call|lesson|class|train|bus|flight|game|match|party|event|session"
    r"|date|visit"
    r"|trip|interview|exam|test|show|concert|talk|workshop|movie|film|one|thing|problem|question"
    r"|point|reason"
    r"|guest|winner|hobby|skill|language|allergy|medication|pill|project|goal|task|book|song|sport"
    r"|pet|plant"
    r"|account|card|client|customer|student|patient|contact|son|daughter|child|kid|brother|sister"
    r"|cousin|uncle"
    r"|aunt|friend|colleague|neighbou?r|name)"
)


class Claim(Struct, frozen=True):
    """One claim of a sentence. `text` is the claim in the third person; `message[start:end]` is the
    sentence in the message. With `is_single` the claim replaces earlier ones of the same slot.
    `until` is the last day on which the claim matters. `is_all` is false if the sentence says more
    than its claims.
    """

    text: str
    triple: Triple
    category: Category
    start: int
    end: int
    is_single: bool = False
    until: date | None = None
    is_all: bool = True

    @property
    def is_denial(self) -> bool:
        """Whether the claim denies something."""
        return canonical(self.triple.relation)[1]

    @property
    def is_ending(self) -> bool:
        """Whether the claim only says that something no longer holds."""
        return ends(self.triple.relation)

    @property
    def slot(self) -> tuple[str, str]:
        """Subject and relation, normalised for comparison."""
        return slot(self.triple)


def slot(triple: Triple) -> tuple[str, str]:
    """Return subject and relation, normalised for comparison; a denied relation gives the same slot
    as the relation.
    """
    return normalise(triple.subject), canonical(triple.relation)[0]


def claims(text: str, said_on: date | None = None, *, is_meant: bool = False) -> tuple[Claim, ...]:
    """Return what the message claims, in order. With `said_on`, a day like “tomorrow” becomes a
    date; without, such claims are left out, since they would soon be wrong. `is_meant` says that
    the text is meant as facts, so that more rules apply.
    """
    rules = _TOLD_RULES if is_meant else _RULES
    text = text[:LONGEST]
    if not is_serious(text):
        return ()
    found: list[Claim] = []
    for sentence in sentences(own_words(text)):
        if leads_elsewhere(sentence.text):
            break
        if is_statement(sentence.text):
            found += _of_sentence(sentence, said_on, rules)
    return tuple(found)


def claims_of(sentence: str, said_on: date | None = None) -> tuple[Claim, ...]:
    """Return what one sentence claims, in the third person, as facts are written, or in
    the first.
    """
    spoken = " ".join(_as_spoken(sentence[: statements.LONGEST + 1]).split())
    whole = Sentence(spoken, 0, len(sentence))
    if not spoken or not is_statement(spoken):
        return ()
    return tuple(_of_sentence(whole, said_on, _TOLD_RULES))


def thing(sentence: str) -> Triple | None:
    """Return the triple of a sentence that gives a unique thing a number or a name; None for any
    other. The rule is not precise enough for ordinary chat.
    """
    match = _A_THING.fullmatch(sentence.strip()[: statements.LONGEST])
    if match is None or _SEVERAL.fullmatch(match["n"].casefold()):
        return None
    return Triple("user", match["n"].casefold(), match["v"].rstrip("."))


def _of_sentence(sentence: Sentence, said_on: date | None, rules: Sequence[Rule]) -> list[Claim]:
    """Return the claims of the whole sentence, or else of its clauses; none if the first clause, or
    one about the user, is not understood.
    """
    whole = " ".join(sentence.text.split())
    if told := list(_of_clause(whole, sentence, said_on, rules)):
        return told
    parts = [core(part) for part in _parts(without_openings(whole))]
    is_all = True
    for place, part in enumerate(parts if len(parts) > 1 else ()):
        found = list(_of_clause(part, sentence, said_on, rules))
        if not found and (place == 0 or _OWN_CLAUSE.match(part)) and not _MOVED.fullmatch(part):
            return []
        is_all = is_all and bool(found)
        told += found
    claims = {claim.triple: claim for claim in told}
    return [claim if is_all else replace(claim, is_all=False) for claim in claims.values()]


def _parts(text: str) -> list[str]:
    """Split a sentence into clauses that each have a subject, repeated where a clause leaves it
    out, with its name if a clause gives it.
    """
    clauses = [part for part in _CLAUSE.split(text) if part]
    found: list[str] = []
    for clause in clauses:
        bare = without_openings(clause)
        subject = _SUBJECT.match(bare)
        gap = _ELLIPSIS.search(bare, subject.end()) if subject else None
        if subject is None or gap is None or _DEPENDS.search(bare[: gap.start()]):
            found.append(clause)
            continue
        who = subject["who"] or subject["mine"]
        head, *rest = [p for p in _ELLIPSIS.sub("\n", bare).split("\n") if p]
        named = _NAMES_HERE.search(head)
        if subject["mine"] and named and who.count(" ") == 1:
            who = f"{who} {named['name']}"
        found += [head, *(f"{who} {part}" for part in rest)]
    return found


def _of_clause(
    clause: str, sentence: Sentence, said_on: date | None, rules: Sequence[Rule]
) -> Iterator[Claim]:
    clause = core(clause[-statements.LONGEST :])
    bare = without_openings(clause)
    for form in dict.fromkeys((bare, clause)):
        for rule in rules:
            match = rule.match(form)
            if match is not None and (values := _values(rule, match)):
                yield from _claims_of(rule, values, sentence, said_on)
                return


def _values(rule: Rule, match: re.Match[str]) -> dict[str, str] | None:
    """Return the values for the placeholders of a rule; None if the value says nothing (“it”,
    “something”).
    """
    values = dict.fromkeys(("n", "v", "w", "a", "b", "c", "rest"), "")
    for name, words in match.groupdict().items():
        if words and not values[name.rstrip("0123456789")]:
            values[name.rstrip("0123456789")] = core(words) if name[0] == "v" else words
    if values["v"] and not rule.loose and _VAGUE.search(values["v"]):
        return None
    for name in ("v", "rest", "w"):
        values[name] = _of_the_user(values[name], is_order=rule.category is Category.INSTRUCTION)
    if rule in _GERMAN:
        values["n"] = _in_english(values["n"])
        if rule.relation in _TRANSLATED:
            values |= {name: _in_english(values[name]) for name in ("v", "w")}
    if rule.subject != "{n}":
        values["n"] = values["n"].lower()
    values |= {"S": "The user", "P": "The user's", "A": values["a"].capitalize()}
    values["pair"] = " and ".join(sorted((values["v"].casefold(), values["w"].casefold())))
    return values


def _in_english(words: str) -> str:
    return re.sub(r"[^\W\d_]+", lambda m: german.ENGLISH.get(m[0].casefold(), m[0].lower()), words)


def _of_the_user(words: str, *, is_order: bool) -> str:
    words = re.sub(
        r"\b(?:my|our)\b", "the user's" if is_order else "their", words, flags=re.IGNORECASE
    )
    words = re.sub(
        r"\b(?:me|us|myself)\b", "the user" if is_order else "them", words, flags=re.IGNORECASE
    )
    return re.sub(r"\bI\b", "the user" if is_order else "they", words)


def _claims_of(
    rule: Rule, values: dict[str, str], sentence: Sentence, said_on: date | None
) -> Iterator[Claim]:
    for member in _LIST.split(values["v"]) if rule.lists else [values["v"]]:
        yield from _claim(rule, {**values, "v": member}, sentence, said_on)
    if rule.kin:
        name = Rule("", "{P} {n} is called {w}.", "{n} name", value="{w}")
        yield from _claim(name, values, sentence, said_on)
    if rule.past:
        gone = Rule("", f"{{S}} {rule.past} {{w}}.", rule.past, rule.category, "{w}")
        yield from _claim(gone, values, sentence, said_on)


def _claim(
    rule: Rule, values: dict[str, str], sentence: Sentence, said_on: date | None
) -> Iterator[Claim]:
    text = " ".join(rule.told.format_map(values).split())
    value = rule.value.format_map(values).strip()
    if rule.category is not Category.INSTRUCTION:
        day, on_day = with_date(text, said_on), with_date(value, said_on)
        if day is None or on_day is None:
            return
        text, value = day, on_day
    relation = " ".join(rule.relation.format_map(values).split()).casefold()
    triple = Triple(rule.subject.format_map(values), relation, value.removeprefix("on "))
    yield Claim(
        text.replace("..", "."),
        triple,
        rule.category,
        sentence.start,
        sentence.end,
        _is_single(relation, sentence.text, is_sole=rule.sole),
        last_day(value, said_on) if rule.told.endswith(" is on {v}.") else None,
        not rule.passing,
    )


def _is_single(relation: str, sentence: str, *, is_sole: bool) -> bool:
    if _BESIDES.search(sentence):
        return False
    if relation.endswith(" name") and (is_sole or _CHANGES.search(sentence)):
        return True
    return is_single(relation)


def _as_spoken(text: str) -> str:
    """Turn a sentence about the user into the first person."""
    text = re.sub(r"\A(?:the )?user's\b", "My", text.strip(), flags=re.IGNORECASE)
    match = _TOLD.match(text)
    if match is None:
        return text
    verb = match["verb"].lower()
    return f"I {match['how']}{_SPOKEN.get(verb, verb.removesuffix('s'))}{text[match.end() :]}"
