"""What a user says about himself, read by rules from his own words.

Precision comes first: a sentence that no rule knows for certain gives nothing, and neither do
questions, suppositions, quotes, code, pasted text and work to be done on a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from agentd.domain.fact import Category, Triple
from agentd.statements import relations
from agentd.statements.calendar import dated
from agentd.statements.definite import definite
from agentd.statements.named import is_by_the_way, named
from agentd.statements.normal import normalised
from agentd.statements.own_words import HOLE, own_words
from agentd.statements.rules import events, german, people, places, taste, work
from agentd.statements.rules.rule import NAMED, Rule
from agentd.statements.sentences import Sentence, sentences
from agentd.statements.shared import each_told

LONGEST = 50_000  # characters that are read of a message: nobody types more about himself
LONGEST_SENTENCE = 300
USER = "user"

_RULES = (
    *events.RULES,
    *people.RULES,
    *places.RULES,
    *work.RULES,
    *taste.RULES,
    *german.RULES,
    *people.THINGS,
)
_ABOUT = re.compile(
    r"\b(?:i|i'm|im|i've|i'll|my|our|we|we're|we've|we'll|ich|mein|meine|wir|unser|unsere|always|never"
    r"|don't ever|from now on|in future|in the future|going forward|call me|the|project|antworte"
    r"|deadline|port|version|host|is|uses|was)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|would|could|might|may (?:be|have)|maybe|perhaps|suppose|supposedly|imagine|pretend"
    r"|wish|hope|hopefully|probably|possibly|unless|whether|i guess|not sure|what if|should i|used to"
    r"|let's say|hypothetically|kidding|joking|jk|allegedly|i'd|we'd|dream|dreamed|dreamt|sarcasm"
    r"|said|says|told|tells|wrote|asked|claims|claimed|according to|quote"
    r"|wenn|falls|würde|würden|könnte|vielleicht|hätte|wäre|angenommen|ob|sagte|sagt|schrieb|meinte"
    r"|for example|e\.g|z\.b|zum beispiel|placeholder|lorem)\b|/s$",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:what|what's|which|who|who's|whose|when|where|why|how|is|are|was|were|do|does|did|can|could"
    r"|will|would|should|have|has|had|wer|wo|wann|warum|wieso|welche[rsnm]?|wie|kannst|hast|ist)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:(?:well|so|and|but|also|oh|ok|okay|yes|yeah|yep|no|nope|hi|hey|hello|hallo|btw|by the way|fyi"
    r"|just so you know|for the record|for your information|for context|some context|actually|anyway"
    r"|note|please note|ps|p\.s|update|correction|info|heads[- ]up|reminder|please remember|remember"
    r"|don't forget|keep in mind|you know|as i said|like i said|to be clear|good news|quick note"
    r"|great news|(?:i )?(?:just )?want(?:ed)? to let you know|you should know|hey there|hi there|thanks|thank you|agentd|übrigens|ach|ja|nein|und)"
    r"(?![\w'])[\s,:;!.–—-]{0,4}(?:that\b\s*)?){1,5}",
    re.IGNORECASE,
)
# A hyphen at the end of a word is a minus sign: blood type A- is not A.
_AFTER = re.compile(
    r"(?:,? (?:by the way|btw|fyi|you know|as i said|like i said|lol|haha|though|actually|now|these days|at the moment|right now|too"
    r"|as well|currently|nowadays|übrigens|jetzt|please|thanks|:-?[)D])|[\s:;,.!…)–—]+|(?<!\w)-+|--+)+\Z",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:;|,)?\s+(?:and|but|und|aber)\s+(?=(?:i|i'm|i've|my|we|our|ich|mein|meine|wir)\s)"
    r"|;\s+|,\s+(?=(?:i|i'm|i've|my|we|our|ich|mein|meine)\s)|\s+[–—-]+\s+|\s+\("
    r"|,?\s+and\s+(?=(?:he|she|it|they)\s)|,\s+(?=(?:he|she|it|they|not)\s)|:\s+(?=(?:i|my)\s)",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?P<who>i|we|ich|wir)(?:(?:'m|'re| am| are| bin| sind)|(?:'ve| have)?(?: (?:just|recently|now"
    r"|finally|also|still))? (?:quit|left|resigned|retired|stopped|gave|moved|live|work|study|joined"
    r"|grew|was|come|use|drive|speak|play|have|got|prefer|habe|haben|wohne|wohnen|lebe|leben|arbeite"
    r"|komme|heiße))\b",
    re.IGNORECASE,
)
# “I live in Rome and work at …” has one subject for both, but “I want to go and work at …” is a wish.
_ELLIPSIS = re.compile(
    r"(?<=\S)(?P<and>,? (?:and|but|und|aber) )(?=(?:(?:now|currently|also|still|jetzt) )?"
    r"(?:work|live|use|drive|moved|joined|switched|speak|play|study|prefer|am|arbeite|wohne|lebe|nutze"
    r"|benutze|verwende|heiße|bin)\s)",
    re.IGNORECASE,
)
_DEPENDS = re.compile(
    r"\b(?:to(?= (?-i:[a-z]))|will|shall|can|can't|cannot|won't|must|should|going|gonna|let|need|do|don't"
    r"|did|didn't|never|not|who|which|that|whose|where|he|she|they|people|friends|zu|die|der|werde"
    r"|kann|muss|soll|möchte|nicht)\b|'ll\b",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"(?:,? (?:because|since|although|though|while|whereas|so that|but|which|who|when|weil|aber|obwohl"
    r"|especially when)\b|, (?:so|and then|i|we|you|it|is|are|right|ok)\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE = re.compile(
    r"(?:\A(?:to it|so|not|none|nothing|something|anything|everything|everyone|someone|anyone|nobody|stuff"
    r"|things?|one|ones|there|here|where|how|what|when|why|whatever|sure|yes|no|both|all|either"
    r"|neither|more|less|another|such|those|these|same|too|fine|good|bad|ok|okay|doing|being)\b"
    r"|\b(?:i|i'm|you|your|yours|u|it|its|it's|that|that's|this|he|she|him|his|her|they|them|their"
    r"|es|das|dich|dir|du|sie|ihn|dies)\b|\bnot\Z)",
    re.IGNORECASE,
)
_NO_TASTE = re.compile(
    r"(?i:my|our|their|a|an|some|any|to see|to know|to say|to think|to be(?! called)|to have|to get"
    r"|getting|having|seeing|knowing|hearing|talking|working with|mein\w*|ein\w*)\b"
    r"|(?i:the)\b(?! [A-Z])"
)
_CALLED = re.compile(r"(?:called|named)\b", re.IGNORECASE)
_ON = re.compile(r"\Aon (?=\d)")
_LIST = re.compile(r",? (?:and|or|und|oder) (?:(?:a little|a bit of|some|fluent) )?|, ")
_MANY_WORDS = 14
_MINE = re.compile(r"\b(?:my|our|mein|meine)\b", re.IGNORECASE)
_ME = re.compile(r"\b(?:me|us|myself)\b", re.IGNORECASE)
_I = re.compile(r"\b(?:I|we)\b")


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing said. `text` is a sentence in the third person; `span` is where in the message the
    sentence stands that says it. A triple of a denied claim has a relation that says so
    (`dislikes`, `no longer uses`).
    """

    text: str
    triple: Triple | None
    category: Category
    is_functional: bool
    is_negated: bool
    span: tuple[int, int]


def claims(text: str, *, speaker: str = USER, said_on: date | None = None) -> tuple[Claim, ...]:
    """What the message claims, in order. `speaker` is who wrote it; “tomorrow” is told as a date when
    `said_on` is known, and is left out else, since it would soon be untrue.
    """
    found: list[Claim] = []
    for sentence in sentences(own_words(text[:LONGEST])):
        if _is_statement(sentence.text):
            found += _of_sentence(sentence, speaker, said_on)
    return tuple(found)


def triple_of(text: str) -> Triple | None:
    """The triple of one sentence in the third person, as claims are told and facts are written by
    hand; None when the rules cannot tell. Of several it is the one that the sentence is told by, and
    never a name that it gives in passing.
    """
    spoken = " ".join(_as_spoken(text[: LONGEST_SENTENCE + 1]).split())
    found = [c for c in claims(spoken) if not (c.triple and is_by_the_way(c.triple, spoken))]
    said = [claim for claim in found if not claim.is_negated or len(found) == 1]
    if len(said) > 1:
        said = [claim for claim in said if normalised(claim.text) == normalised(text)]
    if found:
        return said[0].triple if len(said) == 1 else None
    return named(text) or definite(text)


def _is_statement(text: str) -> bool:
    if len(text) > LONGEST_SENTENCE or HOLE in text or text.endswith(("?", "？")):
        return False
    before = _BEFORE.match(text)
    if _ABOUT.search(text) is None or _UNSURE.search(
        _AFTER.sub("", text[before.end() :] if before else text)
    ):
        return False
    return _ASKS.match(text) is None and "?" not in text


def _of_sentence(sentence: Sentence, speaker: str, said_on: date | None) -> Iterator[Claim]:
    whole = " ".join(sentence.text.split())
    told = tuple(_of_clause(whole, sentence, speaker, said_on))
    if told:
        yield from told
        return
    for clause in _CLAUSE.split(_filled(whole)):
        if len(clause) < len(whole):
            yield from _of_clause(clause, sentence, speaker, said_on)


def _filled(sentence: str) -> str:
    """The sentence with its subject before each verb that shares it."""
    before = _BEFORE.match(sentence)
    subject = _SUBJECT.match(sentence, before.end() if before else 0)
    gap = _ELLIPSIS.search(sentence) if subject else None
    if subject is None or gap is None or _DEPENDS.search(sentence[: gap.start()]):
        return sentence
    return _ELLIPSIS.sub(rf"\g<and>{subject['who']} ", sentence)


def _of_clause(
    clause: str, sentence: Sentence, speaker: str, said_on: date | None
) -> Iterator[Claim]:
    clause = _AFTER.sub("", clause)
    before = _BEFORE.match(clause)
    forms = (clause[before.end() :], clause) if before else (clause,)
    if parts := each_told(forms[0]):
        told = tuple(_of_parts(parts, sentence, speaker, said_on))
        yield from told
        if told:
            return
    for form in forms:
        for rule in _RULES:
            match = rule.match(form)
            if match is not None and (values := _values(rule, match, speaker)):
                yield from _told(rule, values, sentence, said_on)
                return


def _of_parts(
    parts: Sequence[str], sentence: Sentence, speaker: str, said_on: date | None
) -> Iterator[Claim]:
    """What the parts claim, each thing once; nothing if the rules do not know all of them."""
    found: dict[Triple | None, Claim] = {}
    for part in parts:
        told = tuple(_of_clause(part, sentence, speaker, said_on))
        # A name in passing is no part: “my sister Klara sings” says only that.
        if all(claim.triple is None or is_by_the_way(claim.triple, part) for claim in told):
            return
        for claim in told:
            found.setdefault(claim.triple, claim)
    yield from found.values()


def _values(rule: Rule, match: re.Match[str], speaker: str) -> dict[str, str] | None:
    """What stands in the braces of a rule; None when a value says nothing."""
    values = dict.fromkeys(("n", "v", "w", "a", "b", "c", "rest"), "")
    for name, words in match.groupdict().items():
        if words and not values[name.rstrip("0123456789")]:
            values[name.rstrip("0123456789")] = words
    is_order = rule.category is Category.INSTRUCTION
    values["rest"] = _theirs(values["rest"], is_order=False)
    for name in ("v", "w", "b"):
        cut = _CUT.sub("", values[name]) if rule.strict else values[name]
        values[name] = _theirs(_AFTER.sub("", cut), is_order=is_order)
    if rule.strict and not all(
        _says_something(rule, values[k]) for k in "vw" if _took_part(match, k)
    ):
        return None
    who = "The user" if speaker == USER else speaker
    if rule.subject == "{n}":
        values["n"] = re.sub(r"(?i)^project (?=\S)|(?<=\S) project$", "", values["n"])
    else:
        values["n"] = values["n"].lower()
    values |= {"S": who, "P": f"{who}'s", "user": speaker, "A": values["a"].capitalize()}
    values["pair"] = " and ".join(sorted((values["v"].casefold(), values["w"].casefold())))
    return values


def _took_part(match: re.Match[str], name: str) -> bool:
    return any(
        words and key.rstrip("0123456789") == name for key, words in match.groupdict().items()
    )


def _says_something(rule: Rule, value: str) -> bool:
    if not value or len(value.split()) > _MANY_WORDS or not any(map(str.isalnum, value)):
        return False
    if _CALLED.match(value):  # a name is no value of anything else
        return False
    if _VAGUE.search(re.sub(r"\b(?:their|them|they)\b", "", value) or "it"):
        return False
    return rule.category is not Category.PREFERENCE or _NO_TASTE.match(value) is None


def _theirs(words: str, *, is_order: bool) -> str:
    words = _MINE.sub("the user's" if is_order else "their", words)
    words = _ME.sub("the user" if is_order else "them", words)
    return _I.sub("the user" if is_order else "they", words)


def _told(
    rule: Rule, values: dict[str, str], sentence: Sentence, said_on: date | None
) -> Iterator[Claim]:
    members = _LIST.split(values["v"]) if rule.lists else [values["v"]]
    for member in members:
        yield from _claim(rule, {**values, "v": member}, sentence, said_on)
    if rule.subject.endswith(NAMED):
        kind = rule.subject.removesuffix(NAMED)
        called = f"{{P}} {kind} is called {{w}}."
        name = Rule(rule.pattern, called, f"{kind} name", Category.PERSONAL, "{w}")
        yield from _claim(name, values, sentence, said_on)
    if rule.denied:
        denial = Rule(
            rule.pattern, f"{{S}} {rule.denied} {{w}}.", rule.denied, rule.category, "{w}"
        )
        yield from _claim(denial, values, sentence, said_on)


def _claim(
    rule: Rule, values: dict[str, str], sentence: Sentence, said_on: date | None
) -> Iterator[Claim]:
    is_past = rule.category is Category.OUTCOME
    text = dated(" ".join(rule.told.format_map(values).split()), said_on, is_past=is_past)
    value = dated(rule.value.format_map(values).strip(), said_on, is_past=is_past)
    if text is None or value is None:
        return
    relation = " ".join(rule.relation.format_map(values).split()).casefold()
    triple = Triple(rule.subject.format_map(values), relation, _ON.sub("", value))
    _, is_negated = relations.canonical(relation)
    yield Claim(
        text.replace("..", "."),
        triple,
        rule.category,
        relations.is_functional(relation),
        is_negated,
        (sentence.start, sentence.end),
    )


_SAID_OF = re.compile(
    r"\A(?:the )?user (?P<how>(?:(?:no longer|never|now|also|usually|always|currently|mostly) )?)"
    r"(?P<verb>[a-z]+)",
    re.IGNORECASE,
)
_SPOKEN = {"is": "am", "has": "have", "does": "do", "goes": "go", "studies": "study", "was": "was"}


def _as_spoken(text: str) -> str:
    """A sentence in the third person as the user would say it."""
    text = re.sub(r"\A(?:the )?user's\b", "My", text.strip(), flags=re.IGNORECASE)
    text = re.sub(r"\btheir\b", "my", text)
    match = _SAID_OF.match(text)
    if match is None:
        return text
    verb = match["verb"].lower()
    spoken = _SPOKEN.get(verb, verb.removesuffix("s"))
    return f"I {match['how']}{spoken}{text[match.end() :]}"
