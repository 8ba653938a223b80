"""What a fact that is to be forgotten is recognised by in all that was ever written. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from agentd.domain.erasure import Needles, folded
from agentd.domain.fact import Fact
from agentd.statements.sentences import sentences
from agentd.statements.telling import PERSONS, share_said, telling_words

IsCommon = Callable[[str], bool]

_WORD = re.compile(r"[^\W_]+(?:[.:'@/_+-][^\W_]+)*")
_NUMBER = re.compile(r"\+?\d(?:[ ()/.-]{0,2}\d){4,}")
_GERMAN = re.compile(r"\b(?:der|die|das|den|dem|ist|hat|und|heißt|wohnt|mag|ein|eine|des)\b")
_SAID = 0.6  # of the telling words: the rest is how it was put
_LEAST_WORDS = 3  # of a sentence that counts as a whole
_NAME = 3  # letters that a name has at least to count alone
_RARE = 5  # letters that another word has at least
_DIGITS = 3
_YEAR = re.compile(r"(?:19|20)\d\d")
_ROUND = "00"
_USER = frozenset({"user", "the", "users", "nutzer"})
_COMMON = """
january february march april may june july august september october november december jan feb
mar apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember
monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag
freitag samstag sonntag english german french spanish italian american british european englisch
deutsch französisch spanisch italienisch europe america germany austria switzerland england
deutschland österreich schweiz god internet email mail phone telefon computer laptop monday's
mother father mom dad mum sister brother wife husband son daughter child children parents friend
boss partner family mutter vater mama papa schwester bruder frau mann sohn tochter kind kinder
eltern freund freundin chef chefin familie
dog cat bird horse fish hund katze vogel pferd fisch house home flat office city street haus
wohnung büro stadt straße work job company school university arbeit firma schule universität
morning evening night noon week month year today morgen abend nacht mittag woche monat jahr heute
red green blue black white yellow brown grey gray rot grün blau schwarz weiß gelb braun grau
coffee tea water milk bread meat cheese wine beer kaffee wasser milch brot fleisch käse wein bier
car bike train bus plane auto fahrrad zug flugzeug book music film movie buch musik sport
vegetarian vegan allergic allergy doctor dentist nurse teacher engineer developer student
vegetarier vegetarisch allergisch allergie arzt ärztin zahnarzt lehrer lehrerin ingenieur
birthday wedding holiday vacation meeting appointment flight project deadline plan
geburtstag hochzeit urlaub ferien treffen termin flug projekt
always never often daily weekly monthly favourite favorite prefers likes loves hates works lives
immer nie niemals oft täglich lieblings mag liebt hasst arbeitet wohnt lebt heißt
small large big little short long brief new old good bad great right left early late
klein groß kurz lang neu alt gut schlecht früh spät
"""
COMMON = frozenset(_COMMON.split())
# What asks for it to be forgotten names it, too.
_REQUESTS = ("forget", "forgotten", "erase", "delete", "vergiss", "vergessen", "lösche")


def is_common(word: str) -> bool:
    """Whether a word says too little by itself, in English or German, as far as a short list knows.
    One of small letters that it does not have counts as common, too.
    """
    return word.casefold() in COMMON or word.islower()


def needles_of(
    fact: Fact, said: Iterable[str], others: Iterable[Fact], common: IsCommon = is_common
) -> Needles:
    """Its own sentence, the sentences of the texts it was said in that tell it, and its telling words.

    A word counts alone if it is distinctive (a name, a number of three digits, an identifier, a word
    of five letters that is not `common`) and no other active fact has it; else with another word of
    the fact.
    """
    value = fact.triple.value if fact.triple is not None else ""
    told = [s.text for text in said for s in sentences(text) if _tells(s.text, fact.text, value)]
    phrases = [p for p in (fact.text, *told) if len(folded(p).split()) >= _LEAST_WORDS]
    taken = frozenset(
        word
        for other in others
        if other.is_active and other.id != fact.id
        for word in folded(_all_of(other)).split()
    )
    about = _companions(fact)
    values: list[tuple[str, tuple[str, ...]]] = []
    for word, is_name in _candidates(fact, value):
        parts = frozenset(folded(word).split())
        near = tuple(w for w in about if folded(w) not in parts)
        if not parts <= taken and _is_distinctive(word, is_name, common):
            values.append((word, ()))
        elif near:
            values.append((word, near))
    return Needles(tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(values)))


def joined(several: Iterable[Needles]) -> Needles:
    """All of them at once."""
    several = tuple(several)
    return Needles(
        tuple(dict.fromkeys(phrase for needles in several for phrase in needles.phrases)),
        tuple(dict.fromkeys(value for needles in several for value in needles.values)),
    )


def _all_of(fact: Fact) -> str:
    return f"{fact.text} {fact.triple.value}" if fact.triple is not None else fact.text


def _tells(sentence: str, text: str, value: str) -> bool:
    held = folded(value)
    is_held = bool(held) and f" {held} " in f" {folded(sentence)} "
    return is_held or share_said(text, sentence) >= _SAID


def _candidates(fact: Fact, value: str) -> Iterator[tuple[str, bool]]:
    """The words that may tell it, and whether each is a name; a value of several words as a whole,
    and of its words those of content.
    """
    text = unicodedata.normalize("NFKC", fact.text)
    value = unicodedata.normalize("NFKC", value)
    subject = fact.triple.subject if fact.triple is not None else ""
    besides = {*_USER, *folded(subject).split()}
    if len(folded(value).split()) > 1:
        yield value, False
    only = not telling_words(value)
    for found in _WORD.finditer(value):
        if only or telling_words(found[0]):
            yield found[0], found[0][0].isupper()
    for found in _NUMBER.finditer(f"{text}\n{value}"):
        yield found[0], False
    is_german = bool(_GERMAN.search(text))
    telling = frozenset(telling_words(text))
    for found in _WORD.finditer(text):
        word = found[0].removesuffix("'s")
        if folded(word) in besides or word.casefold() not in telling:
            continue
        begins = not text[: found.start()].strip() or text[: found.start()].rstrip()[-1] in ".!?"
        is_name = word[0].isupper() and not begins and not is_german
        if not value or is_name or any(map(str.isdigit, word)):
            yield word, is_name


def _companions(fact: Fact) -> tuple[str, ...]:
    """Words that tell what a word of the fact is about: those of its subject and relation, and of its
    sentence; persons, where none of the first stands in the sentence.
    """
    text = f" {folded(fact.text)} "
    triple = fact.triple
    value = frozenset(folded(triple.value).split()) if triple is not None else frozenset()
    named = telling_words(f"{triple.subject} {triple.relation}") if triple is not None else ()
    about = [w for w in (*named, *telling_words(fact.text)) if w not in _USER | value]
    if not any(f" {folded(word)} " in text for word in about):
        about += PERSONS
    return tuple(dict.fromkeys((*about, *_REQUESTS)))


def _is_distinctive(word: str, is_name: bool, common: IsCommon) -> bool:
    digits = sum(map(str.isdigit, word))
    if word.casefold() in COMMON:
        return False
    if digits:
        is_plain = digits == len(word)
        is_vague = is_plain and (_YEAR.fullmatch(word) or word.endswith(_ROUND))
        return digits >= _DIGITS and not is_vague
    if "@" in word or "." in word or "_" in word:
        return True
    letters = len(word)
    return (is_name and letters >= _NAME) or (letters >= _RARE and not common(word.casefold()))
