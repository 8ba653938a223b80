"""Decides whether text states something seriously and as its writer's own. Pure.

Questions, suppositions, jokes, letters and texts to be worked on are no statements.
"""

from __future__ import annotations

import re

from agentd.providers.offline.language.sentences import HOLE

LONGEST = 300  # characters of a sentence

_ABOUT = re.compile(
    r"\b(?:i|i'm|im|i've|my|our|we|we're|we've|ich|mein|meine|wir|unser|unsere|always|never|from "
    r"now on"
    r"|call me|in future|in the future|going forward|antworte|deadline|port|(?:lives|works) (?:in"
    r"|at))\b",
    re.IGNORECASE,
)
# Matched against lower-case text: ignoring case in the pattern takes three times as long.
_UNSURE = re.compile(
    r"\b(?:if|would|could|might|may|maybe|perhaps|suppos\w+|imagine|pretend\w*|assum\w+|wish"
    r"|hopes?|hopefully"
    r"|probably|possibly|unless|whether|i guess|not sure|should|used to|let's|hypothetically"
    r"|allegedly"
    r"|apparently|according to|i'd|we'd|dream\w*|said|says|say|told|tells|wrote|writes|asked"
    r"|claims?|claimed"
    r"|thinks?|believes?|goes|like,|quote|sang|sings|as if|as though|feel like|basically"
    r"|practically"
    r"|technically|pretty much|once|as soon as|until|till|before|after|when|while|during|last|ex"
    r"|formerly"
    r"|previously|years ago|back then|in the (?:game|film|movie|story|book|novel|dream|play)|in "
    r"theory"
    r"|in another life|for example|e\.g|placeholder|lorem|these days|this (?:week|weekend|month)"
    r"|today only"
    r"|for (?:a|the) (?:few |couple of )?(?:day|week|weekend|month|year|while)s?|temporarily|for "
    r"now"
    r"|wenn|falls|würden?|könnten?|vielleicht|hätten?|wären?|angenommen|ob|sagte|sagt|sagen"
    r"|schrieb|schreibt"
    r"|meinte?|meint|denkt|glaubt|behauptet|möchten?|wollten?|sollten?|müssten?|früher|damals|bis"
    r"|bevor|sobald"
    r"|als kind|z\.b|zum beispiel|praktisch|quasi|heute|diese woche|gestern)\b"
)
# Phrases with words of `_UNSURE` that express no doubt: “in May”, “moved last month”.
_CERTAIN = re.compile(
    r"\b(?:last (?:name|week|month|year|spring|summer|autumn|fall|winter)|until? further|(?:before"
    r"|after) (?:you|pushing|deploy\w*)\b"
    r"|(?:turned \d\d) (?:today|yesterday)|in may|may \d{1,2}|\d{1,2}(?:th|st|nd|rd)? (?:of "
    r")?may)\b|(?:ask|warn|tell|remind) me (?:before|when)",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:just kidding|kidding|jk|only joking|joking|joke|lol|rofl|lmao|haha\w*|hehe\w*|hihi\w*"
    r"|sarcasm"
    r"|sarcastic|ironic|ironie|scherz|witz|spaß beiseite|april fools?|aprilscherz|not really"
    r"|nicht wirklich"
    r"|two truths|no,? wait|wait,? no|scratch that|never ?mind|i mean|ich meine|quatsch|stimmt "
    r"nicht|that's wrong|not true|asking for a friend|für einen freund|in my dreams|in meinen "
    r"träumen|nicht ernst)\b|/s\s*$|(?:\A|[.!…]\s)(?:not|nicht)[.!]*\s*\Z|[😂🤣😉😜😝🙃😏😅😆🤪]|;-?\)",
    re.IGNORECASE | re.MULTILINE,
)
# Openings after which the message is a text to be worked on, a role to play, or a letter.
_OPENS_OTHER = re.compile(
    r"(?:(?:please|can you|could you|bitte|now|hey|hi|ok)[, ]+){0,3}"
    r"(?:translate|summari[sz]e|rewrite|rephrase|proofread|correct|fix|improve|paraphrase|shorten"
    r"|repeat"
    r"|imagine|pretend|act as|act like|role-?play|suppose|assume|let's|you(?:'re| are) (?:a|an|my"
    r"|the)\b|i'm playing"
    r"|in (?:the|my|this) (?:game|film|movie|novel|story|book|dream|play)|say\b|write|draft|put "
    r"this"
    r"|tell (?!me\b)|reply to|dear\b|sehr geehrte|to whom it may|here(?:'s| is) (?:the|a|my) "
    r"(?:text|email|mail|letter|draft|story)"
    r"|übersetze|fasse|schreib|korrigiere|verbessere|stell dir vor|angenommen|wiederhole)",
    re.IGNORECASE,
)
_COLON = re.compile(r":(?:\s|\Z)")
# The message is about wording.
_WORDING = re.compile(
    r"\b(?:grammar|spelling|translat\w+|proofread|(?:does|do) (?:this|it|that) sound|is (?:this"
    r"|that|it) (?:correct|right)"
    r"|correct (?:english|german)|(?:this|the following) sentence|in (?:english|german|french"
    r"|spanish)\?|übersetz\w*"
    r"|grammatik|klingt das|sagt man|ist das (?:richtig|korrekt)|auf (?:deutsch|englisch)\?)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:what|what's|which|who|who's|whose|when|where|why|how|is|are|was|were|do|does|did|can|could"
    r"|will|would|should|have|has|had|wer|wo|wann|warum|wieso|welche[rsnm]?|wie|kannst|hast|ist)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:(?:well|so|and|but|also|oh|ok|okay|yes|yeah|yep|no|nope|hi|hey|hello|hallo|btw|by the way"
    r"|fyi"
    r"|just so you know|for the record|for your information|for context|actually|anyway|note"
    r"|please note"
    r"|ps|p\.s|update|correction|info|heads[- ]up|reminder|please remember|remember|don't forget"
    r"|keep in mind|you know|as i said|to be clear|good news|great news|quick note|news|i just "
    r"wanted to let you know"
    r"|you should know|hey there|hi there|thanks|thank you|agentd|übrigens|ach|ja|nein|doch|und"
    r"|also|nur zur info"
    r"|korrektur|change of plans|merk dir|bitte|denk daran|vergiss "
    r"nicht)(?![\w'])[\s,:;!.–—-]{0,4}(?:(?:that|dass)\b\s*)?){1,5}",
    re.IGNORECASE,
)
_MARKS = ":;,.!…)–—"
_LONGEST_AFTER = 80  # characters
# One addition after a statement (“by the way”), without the punctuation around it.
_AFTER = re.compile(
    r"(?:,? (?:by the way|btw|fyi|you know|as i said|though|actually|at the moment|right now|too"
    r"|as well"
    r"|currently|übrigens|please|thanks|:-?\)|🎉|🥳|😊|🙂|❤️)|,? (?:not|nicht) (?-i:[A-Z])\w{1,60}+)\Z",
    re.IGNORECASE,
)


def is_serious(text: str) -> bool:
    """Whether a message is no joke, does not retract itself, and is not about wording."""
    return _JOKE.search(text) is None and _WORDING.search(text) is None


def is_retraction(text: str) -> bool:
    """Whether a message retracts the one before as a joke or a mistake."""
    return len(text) < 80 and _JOKE.search(text) is not None


def leads_elsewhere(text: str) -> bool:
    """Whether the text after this sentence is somebody else's, or part of a game."""
    if HOLE in text:
        text = text.split(HOLE, 1)[0]
    if _OPENS_OTHER.match(text):
        return True
    before = _BEFORE.match(text)
    return _COLON.search(text, before.end() if before else 0) is not None


def is_statement(text: str) -> bool:
    """Whether a sentence states something about its writer without doubt."""
    if len(text) > LONGEST or HOLE in text or "?" in text or "？" in text:
        return False
    if _ABOUT.search(text) is None or _ASKS.match(text):
        return False
    return not _UNSURE.search(_CERTAIN.sub(" ", core(without_openings(text))).lower())


def without_openings(text: str) -> str:
    """Return the text without openings like “by the way” at its beginning."""
    before = _BEFORE.match(text)
    return text[before.end() :] if before and before.end() < len(text) else text


def core(text: str) -> str:
    """Return the text without punctuation and additions like “by the way” at its end."""
    end = _before_marks(text, len(text))
    while found := _AFTER.search(text, max(end - _LONGEST_AFTER, 0), end):
        end = _before_marks(text, found.start())
    return text[:end]


def _before_marks(text: str, end: int) -> int:
    """Return where the punctuation before `end` begins. A single hyphen after a word is a minus
    sign and stays: blood type A- is not A.
    """
    while end:
        if text[end - 1].isspace() or text[end - 1] in _MARKS:
            end -= 1
            continue
        word = end
        while word and text[word - 1] == "-":
            word -= 1
        is_minus = (
            word == end - 1 and word > 0 and (text[word - 1].isalnum() or text[word - 1] == "_")
        )
        if word == end or is_minus:
            return end
        end = word
    return end
