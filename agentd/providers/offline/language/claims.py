"""What a user says about himself, read by rules from his own words. Pure.

Precision comes first. A sentence counts only if the rules know it from its first word; questions,
suppositions, jokes, quotes, code and whatever stands behind “translate:” or “she wrote:” give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from agentd.domain.fact import Category, Triple
from agentd.providers.offline.language import english, german
from agentd.providers.offline.language.calendar import dated, last_day
from agentd.providers.offline.language.relations import canonical, ends, is_single, normalised
from agentd.providers.offline.language.rule import Rule
from agentd.providers.offline.language.sentences import HOLE, Sentence, own_words, sentences

LONGEST = 10_000  # characters that are read of a message: nobody types more about himself
LONGEST_SENTENCE = 300

_RULES = (*english.RULES, *german.RULES)
_TOLD_RULES = (*_RULES, *english.TOLD, *german.TOLD)
_GERMAN = frozenset((*german.RULES, *german.TOLD))
_ABOUT = re.compile(
    r"\b(?:i|i'm|im|i've|my|our|we|we're|we've|ich|mein|meine|wir|unser|unsere|always|never|from now on"
    r"|in future|in the future|going forward|antworte|deadline|port|(?:lives|works) (?:in|at))\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|would|could|might|may|maybe|perhaps|suppos\w+|imagine|pretend\w*|assum\w+|wish|hopes?|hopefully"
    r"|probably|possibly|unless|whether|i guess|not sure|should|used to|let's|hypothetically|allegedly"
    r"|apparently|according to|i'd|we'd|dream\w*|said|says|say|told|tells|wrote|writes|asked|claims?|claimed"
    r"|thinks?|believes?|goes|like,|quote|sang|sings|as if|as though|feel like|basically|practically"
    r"|technically|pretty much|once|as soon as|until|till|before|after|when|while|during|last|ex|formerly"
    r"|previously|years ago|back then|in the (?:game|film|movie|story|book|novel|dream|play)|in theory"
    r"|in another life|for example|e\.g|placeholder|lorem|these days|this (?:week|weekend|month)|today only"
    r"|for (?:a|the) (?:few |couple of )?(?:day|week|weekend|month|year|while)s?|temporarily|for now"
    r"|wenn|falls|würden?|könnten?|vielleicht|hätten?|wären?|angenommen|ob|sagte|sagt|sagen|schrieb|schreibt"
    r"|meinte?|meint|denkt|glaubt|behauptet|möchten?|wollten?|sollten?|müssten?|früher|damals|bis|bevor|sobald"
    r"|als kind|z\.b|zum beispiel|praktisch|quasi|heute|diese woche|gestern)\b",
    re.IGNORECASE,
)
# A day that is named is no doubt; neither is “last month” of somebody who has moved.
_CERTAIN = re.compile(
    r"\b(?:last (?:name|week|month|year|spring|summer|autumn|fall|winter)|until? further|(?:before|after) (?:you|pushing|deploy\w*)\b"
    r"|(?:turned \d\d) (?:today|yesterday)|in may|may \d{1,2}|\d{1,2}(?:th|st|nd|rd)? (?:of )?may)\b|(?:ask|warn|tell|remind) me (?:before|when)",
    re.IGNORECASE,
)
_TRANSLATED = (
    "diet",
    "no longer diet",
    "allergic to",
    "no longer allergic to",
    "does not eat",
    "does not drink",
)
_JOKE = re.compile(
    r"\b(?:just kidding|kidding|jk|only joking|joking|joke|lol|rofl|lmao|haha\w*|hehe\w*|hihi\w*|sarcasm"
    r"|sarcastic|ironic|ironie|scherz|witz|spaß beiseite|april fools?|aprilscherz|not really|nicht wirklich"
    r"|two truths|in my dreams|in meinen träumen|nicht ernst)\b|/s\s*$|[😂🤣😉😜😝🙃😏😅😆🤪]|[;:]-?[P)](?:\s|$)(?<=;\))",
    re.IGNORECASE | re.MULTILINE,
)
# What follows in the message is a text to work on, a part to play, or a letter.
_OPENS_OTHER = re.compile(
    r"(?:(?:please|can you|could you|bitte|now|hey|hi|ok)[, ]+){0,3}"
    r"(?:translate|summari[sz]e|rewrite|rephrase|proofread|correct|fix|improve|paraphrase|shorten|repeat"
    r"|imagine|pretend|act as|act like|role-?play|suppose|assume|let's|you(?:'re| are) (?:a|an|my|the)\b|i'm playing"
    r"|in (?:the|my|this) (?:game|film|movie|novel|story|book|dream|play)|say\b|write|draft|put this"
    r"|tell (?!me\b)|reply to|dear\b|sehr geehrte|to whom it may|here(?:'s| is) (?:the|a|my) (?:text|email|mail|letter|draft|story)"
    r"|übersetze|fasse|schreib|korrigiere|verbessere|stell dir vor|angenommen|wiederhole)",
    re.IGNORECASE,
)
_COLON = re.compile(r":(?:\s|\Z)")
_ASKS = re.compile(
    r"(?:what|what's|which|who|who's|whose|when|where|why|how|is|are|was|were|do|does|did|can|could"
    r"|will|would|should|have|has|had|wer|wo|wann|warum|wieso|welche[rsnm]?|wie|kannst|hast|ist)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:(?:well|so|and|but|also|oh|ok|okay|yes|yeah|yep|no|nope|hi|hey|hello|hallo|btw|by the way|fyi"
    r"|just so you know|for the record|for your information|for context|actually|anyway|note|please note"
    r"|ps|p\.s|update|correction|info|heads[- ]up|reminder|please remember|remember|don't forget"
    r"|keep in mind|you know|as i said|to be clear|good news|great news|quick note|news|i just wanted to let you know"
    r"|you should know|hey there|hi there|thanks|thank you|agentd|übrigens|ach|ja|nein|doch|und|also|nur zur info"
    r"|korrektur|change of plans|merk dir|bitte|denk daran|vergiss nicht)(?![\w'])[\s,:;!.–—-]{0,4}(?:(?:that|dass)\b\s*)?){1,5}",
    re.IGNORECASE,
)
# A hyphen at the end of a word is a minus sign: blood type A- is not A.
_AFTER = re.compile(
    r"(?:,? (?:by the way|btw|fyi|you know|as i said|though|actually|at the moment|right now|too|as well"
    r"|currently|übrigens|please|thanks|:-?\)|🎉|🥳|😊|🙂|❤️)|,? (?:not|nicht) (?-i:[A-Z])\w+|[\s:;,.!…)–—]|(?<!\w)-|--+)+\Z",
    re.IGNORECASE,
)
# Clauses with a subject of their own.
_CLAUSE = re.compile(
    r"(?:;|,)?\s+(?:and|but|und|aber)\s+(?=(?:i|i'm|i've|my|we|our|he|she|it|they|ich|mein|meine|wir|er|sie|es)\s)"
    r"|;\s+|,\s+(?=(?:i|i'm|i've|my|we|our|he|she|it|they|ich|mein|meine|wir)\s)",
    re.IGNORECASE,
)
_OWN_CLAUSE = re.compile(r"(?:i|i'm|i've|we|we're|ich|wir)\b", re.IGNORECASE)
_MOVED = re.compile(
    r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?:moved|got married|changed jobs)(?: house| again)?|(?:wir sind|ich bin) (?:gerade )?umgezogen"
    r"|i(?:'m| am) {0,1}(?-i:[A-Z])[a-zà-ÿ]+",
    re.IGNORECASE,
)
# “I live in Rome and work at …” has one subject for both.
_SUBJECT = re.compile(
    r"(?P<who>i|we|ich|wir)(?:'m| am| bin| now| also| just| recently)?(?: (?:quit|left|moved|live|work|study|joined|use|drive|speak"
    r"|play|have|prefer|wohne|wohnen|lebe|arbeite|heiße|komme))\b|(?P<mine>(?:my|our|meine?|unsere?|unser) [\w-]+(?: (?-i:[A-ZÀ-Þ])[\w'-]+)?)"
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
    r"\b(?:to|will|can|can't|won't|must|going|gonna|let|need|do|don't|did|didn't|never|not|who|which|that"
    r"|he|she|they|people|zu|werde|kann|muss|soll|nicht|want|wants)\b",
    re.IGNORECASE,
)
_NAMES_HERE = re.compile(
    r" (?:is |')?(?:s )?(?:called|named|name is|heißt) (?P<name>(?-i:[A-ZÀ-Þ])[\w'-]+)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\A(?:to it|so|not|none|nothing|something|anything|everything|everyone|someone|anyone|nobody|stuff"
    r"|things?|ones?|there|here|where|how|what|when|why|whatever|sure|yes|no|both|all|either|neither|more"
    r"|less|another|such|same|too|fine|good|bad|ok|okay)\b"
    r"|\b(?:i|i'm|you|your|yours|it|its|it's|that|that's|this|these|those|he|she|him|his|her|them|they|their|es|dich|dir|du|ihn|dies)\b|\bnot\Z",
    re.IGNORECASE,
)
_LIST = re.compile(r",? (?:and|or|und|oder) (?:(?:a little|a bit of|some|fluent) )?|, ")
_CHANGES = re.compile(
    r"\b(?:now|actually|correction|renamed|jetzt|eigentlich|sondern|korrektur)\b|, (?:not|nicht)\b|\A(?:no|nein|doch)\b",
    re.IGNORECASE,
)
_SPOKEN = {"is": "am", "has": "have", "does": "do", "goes": "go", "studies": "study", "was": "was"}
_TOLD = re.compile(
    r"(?:the )?user (?P<how>(?:(?:no longer|never|now|also|always|currently) )?)(?P<verb>[a-z]+)",
    re.IGNORECASE,
)
# “The boiler code is 4417”: a thing of which there is one, and its number or name.
_A_THING = re.compile(
    r"(?:(?:the )?user's|my|our|the) (?P<n>(?-i:[a-z])[\w-]*(?: (?!of\b|for\b|in\b|at\b|on\b)[\w-]+){0,2}?) (?:is(?: now)?|=|was changed to)"
    r" (?P<v>\S*\d\S*(?: \S*\d\S*){0,3}?|(?-i:[A-ZÀ-Þ])[\w'&+./-]*(?: (?-i:[A-ZÀ-Þ\d])[\w'&+./-]*){0,3}?)(?: now)?[.!]*",
    re.IGNORECASE,
)
# Of these there are several, at once or one after the other.
_SEVERAL = re.compile(
    r".*\b(?:meeting|appointment|call|lesson|class|train|bus|flight|game|match|party|event|session|date|visit"
    r"|trip|interview|exam|test|show|concert|talk|workshop|movie|film|one|thing|problem|question|point|reason"
    r"|guest|winner|hobby|skill|language|allergy|medication|pill|project|goal|task|book|song|sport|pet|plant"
    r"|account|card|client|customer|student|patient|contact|son|daughter|child|kid|brother|sister|cousin|uncle"
    r"|aunt|friend|colleague|neighbou?r|name)"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing said. `text` is a sentence in the third person, `message[start:end]` the sentence that
    says it. `changes` says that the sentence itself speaks of a change. `until` is the day after which
    it says nothing any more. `is_all` unless the sentence says more than its claims.
    """

    text: str
    triple: Triple
    category: Category
    start: int
    end: int
    changes: bool = False
    until: date | None = None
    is_all: bool = True

    @property
    def is_denial(self) -> bool:
        """Whether it says that something is not so."""
        return canonical(self.triple.relation)[1]

    @property
    def is_ending(self) -> bool:
        """Whether it only says that something is no longer so."""
        return ends(self.triple.relation)

    @property
    def is_single(self) -> bool:
        """Whether it takes the place of what was said of the same before."""
        relation = self.triple.relation
        return is_single(relation) or (self.changes and relation.endswith(" name"))

    @property
    def slot(self) -> tuple[str, str]:
        """Subject and relation, to be compared."""
        return slot(self.triple)


def slot(triple: Triple) -> tuple[str, str]:
    """Subject and relation, to be compared: what is denied has the slot of what is said."""
    return normalised(triple.subject), canonical(triple.relation)[0]


def claims(text: str, said_on: date | None = None, *, is_meant: bool = False) -> tuple[Claim, ...]:
    """What the message claims, in order. “Tomorrow” is told as a date when `said_on` is known, and is
    left out else, since it would soon be untrue. What `is_meant` to be a fact is no joke, and no turn
    of speech.
    """
    rules = _TOLD_RULES if is_meant else _RULES
    text = text[:LONGEST]
    if _JOKE.search(text):
        return ()
    found: list[Claim] = []
    for sentence in sentences(own_words(text)):
        if _leads_elsewhere(sentence.text):
            break
        if _is_statement(sentence.text):
            found += _of_sentence(sentence, said_on, rules)
    return tuple(found)


def claims_of(sentence: str, said_on: date | None = None) -> tuple[Claim, ...]:
    """What one sentence claims that is told in the third person, as facts are, or in the first."""
    spoken = " ".join(_as_spoken(sentence[: LONGEST_SENTENCE + 1]).split())
    whole = Sentence(spoken, 0, len(sentence))
    if not spoken or not _is_statement(spoken):
        return ()
    return tuple(_of_sentence(whole, said_on, _TOLD_RULES))


def thing(sentence: str) -> Triple | None:
    """The triple of a sentence that gives the only thing of its kind a number or a name; None for any
    other. It is not certain enough to be read out of a chat.
    """
    match = _A_THING.fullmatch(sentence.strip()[:LONGEST_SENTENCE])
    if match is None or _SEVERAL.fullmatch(match["n"].casefold()):
        return None
    return Triple("user", match["n"].casefold(), match["v"].rstrip("."))


def is_retraction(text: str) -> bool:
    """Whether a message takes back the one before as a joke or a mistake."""
    return len(text) < 80 and _JOKE.search(text) is not None


def _leads_elsewhere(text: str) -> bool:
    if HOLE in text:
        text = text.split(HOLE, 1)[0]
    if _OPENS_OTHER.match(text):
        return True
    before = _BEFORE.match(text)
    return _COLON.search(text, before.end() if before else 0) is not None


def _is_statement(text: str) -> bool:
    if len(text) > LONGEST_SENTENCE or HOLE in text or "?" in text or "？" in text:
        return False
    if _ABOUT.search(text) is None or _ASKS.match(text):
        return False
    return not _UNSURE.search(_CERTAIN.sub(" ", _AFTER.sub("", _without_openings(text))))


def _of_sentence(sentence: Sentence, said_on: date | None, rules: Sequence[Rule]) -> list[Claim]:
    """The claims of a sentence whose first clause is understood, or of all its parts together."""
    whole = " ".join(sentence.text.split())
    if told := list(_of_clause(whole, sentence, said_on, rules)):
        return told
    parts = [_AFTER.sub("", part) for part in _parts(_without_openings(whole))]
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
    """The clauses of a sentence, each with a subject, and with the name of the subject where one clause
    gives it.
    """
    clauses = [part for part in _CLAUSE.split(text) if part]
    found: list[str] = []
    for clause in clauses:
        bare = _without_openings(clause)
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


def _without_openings(text: str) -> str:
    before = _BEFORE.match(text)
    return text[before.end() :] if before and before.end() < len(text) else text


def _of_clause(
    clause: str, sentence: Sentence, said_on: date | None, rules: Sequence[Rule]
) -> Iterator[Claim]:
    clause = _AFTER.sub("", clause[-LONGEST_SENTENCE:])
    bare = _without_openings(clause)
    for form in dict.fromkeys((bare, clause)):
        for rule in rules:
            match = rule.match(form)
            if match is not None and (values := _values(rule, match)):
                yield from _told(rule, values, sentence, said_on)
                return


def _values(rule: Rule, match: re.Match[str]) -> dict[str, str] | None:
    """What stands in the braces of a rule; None when a value says nothing."""
    values = dict.fromkeys(("n", "v", "w", "a", "b", "c", "rest"), "")
    for name, words in match.groupdict().items():
        if words and not values[name.rstrip("0123456789")]:
            values[name.rstrip("0123456789")] = _AFTER.sub("", words) if name[0] == "v" else words
    if values["v"] and not rule.loose and _VAGUE.search(values["v"]):
        return None
    for name in ("v", "rest", "w"):
        values[name] = _of_the_user(values[name], is_order=rule.category is Category.INSTRUCTION)
    if rule in _GERMAN:
        values["n"] = _in_english(values["n"])
        if rule.relation in _TRANSLATED:
            values["v"] = _in_english(values["v"])
    if rule.subject != "{n}":
        values["n"] = values["n"].lower()
    values |= {"S": "The user", "P": "The user's", "A": values["a"].capitalize()}
    values["pair"] = " and ".join(sorted((values["v"].casefold(), values["w"].casefold())))
    return values


def _in_english(words: str) -> str:
    return re.sub(r"[^\W\d_]+", lambda m: german.ENGLISH.get(m[0].casefold(), m[0]), words)


def _of_the_user(words: str, *, is_order: bool) -> str:
    words = re.sub(
        r"\b(?:my|our)\b", "the user's" if is_order else "their", words, flags=re.IGNORECASE
    )
    words = re.sub(
        r"\b(?:me|us|myself)\b", "the user" if is_order else "them", words, flags=re.IGNORECASE
    )
    return re.sub(r"\bI\b", "the user" if is_order else "they", words)


def _told(
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
        day, on_day = dated(text, said_on), dated(value, said_on)
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
        _CHANGES.search(sentence.text) is not None,
        last_day(value, said_on) if rule.told.endswith(" is on {v}.") else None,
        not rule.passing,
    )


def _as_spoken(text: str) -> str:
    """A sentence in the third person as the user would say it."""
    text = re.sub(r"\A(?:the )?user's\b", "My", text.strip(), flags=re.IGNORECASE)
    match = _TOLD.match(text)
    if match is None:
        return text
    verb = match["verb"].lower()
    return f"I {match['how']}{_SPOKEN.get(verb, verb.removesuffix('s'))}{text[match.end() :]}"
