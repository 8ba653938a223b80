"""Saves what the user stated before it leaves the context. Pure.

Kept are the user's own sentences that ask to remember, speak of the user, or contain a name, a
number, a link or a path. Questions, requests, small talk, the agent's words, tool results and
fenced text are not kept, nor is anything that a note already contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from agentd.core.prompt import Prompt
from agentd.engine.compaction.extract import identifiers
from agentd.providers.offline import conversation
from agentd.providers.offline.conversation import FinalText, OfflineCall, Reply
from agentd.providers.offline.intent import RememberIntent, SmallTalk, intent
from agentd.providers.offline.language import word_forms
from agentd.providers.offline.language.sentences import split, without_order

NOTHING = "NO_REPLY"
_TOOL = "memory_write"
_TITLE = "From the conversation:"
_LINE_CHARS = 500  # kept of one sentence
_ALL_BYTES = 24_000  # in one write
_SENTENCES = 10_000  # looked at in one message
_LONG = 6_000  # a message above this is pasted text: only its plain statements count
_ORDERED, _OWN, _TELLING = 0, 1, 2  # ranks: what goes first when there is too much
_FENCE = re.compile(r'<data source="[^"\n]{0,200}">.*?(?:</data>|\Z)|```.*?(?:```|\Z)', re.DOTALL)
_OWN_WORDS = re.compile(
    r"\b(?:i|i['’](?:m|ve|ll|d)|my|mine|me|we|our|us|ich|mir|mein\w{0,2}|wir|unser\w{0,2}|je"
    r"|j['’]\w|mon|ma|mes"
    r"|nous|notre|yo|mi|mis|nosotros|nuestr[oa]|decided|decision|prefers?|always|never|deadline"
    r"|let['’]s|agreed|must|remember|forget)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"(?:please )?(?:show|list|open|read|tell|give|let) me\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ]\w")
_DAY = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


class _Statement(Struct, frozen=True):
    text: str
    rank: int


def reply(prompt: Prompt) -> Reply:
    """Return one `memory_write` of the statements that are in no note yet; then NO_REPLY."""
    done = conversation.done(prompt)
    if done:
        failed = done[-1].result
        return FinalText(f"Nothing was saved: {failed.text}" if failed.is_error else NOTHING)
    kept = statements(conversation.earlier_words(prompt), known_words(prompt))
    if not kept or _TOOL not in {spec.name for spec in prompt.tools}:
        return FinalText(NOTHING)
    return OfflineCall(_TOOL, {"content": _content(kept)})


def statements(texts: Iterable[str], already: str = "") -> tuple[str, ...]:
    """Return what the user's messages state, in order and of limited length; each sentence once,
    and none that `already` (normalised words) contains.
    """
    seen: set[str] = set()
    found: list[_Statement] = []
    for text in texts:
        for statement in _statements(text):
            normal = word_forms.normal(statement.text)
            if normal and normal not in seen and f" {normal} " not in already:
                seen.add(normal)
                found.append(statement)
    kept = _fitting(found)
    return tuple(s.text for n, s in enumerate(found) if n in kept)


def known_words(prompt: Prompt) -> str:
    """Return the normalised words of all notes in the prompt, of notes written in this
    conversation, and of messages kept as facts.
    """
    kept = map(without_order, conversation.remembered_words(prompt))
    texts = (*prompt.system[1:], *conversation.written_notes(prompt), *kept)
    return " ".join(("", *map(word_forms.normal, texts), ""))


def _statements(text: str) -> Iterator[_Statement]:
    is_pasted = len(text) > _LONG
    plain = _FENCE.sub("\n", text)
    whole = intent(plain)
    if isinstance(whole, RememberIntent) and whole.text and len(whole.text) <= _LINE_CHARS:
        yield _Statement(" ".join(whole.text.split()), _ORDERED)
        return
    for sentence in dict.fromkeys(islice(split(plain), _SENTENCES)):
        rank = _rank(sentence, is_pasted=is_pasted)
        if rank is not None:
            yield _Statement(_statement_text(sentence), rank)


def _rank(sentence: str, *, is_pasted: bool) -> int | None:
    """Return how much the sentence is worth keeping (lower is more); None if not at all."""
    is_own = _OWN_WORDS.search(sentence[:_LINE_CHARS]) is not None
    if is_pasted and not is_own:
        return None
    wanted = intent(sentence)
    if isinstance(wanted, RememberIntent):
        return _ORDERED if wanted.text else None
    if wanted not in (SmallTalk.STATEMENT, SmallTalk.UNKNOWN) or _REQUEST.match(sentence):
        return None
    count = len(word_forms.terms(sentence))
    if is_own and count:
        return _OWN
    head = sentence[:_LINE_CHARS]
    if count < 2:
        return None
    telling = any(c.isdigit() for c in head) or identifiers(head)
    named = any(p.search(head) for p in (_NAME, _DAY, _UNSPACED))
    return _TELLING if telling or named else None


def _statement_text(sentence: str) -> str:
    wanted = intent(sentence)
    text = wanted.text if isinstance(wanted, RememberIntent) else sentence
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE_CHARS else f"{flat[:_LINE_CHARS]} […]"


def _fitting(found: Sequence[_Statement]) -> set[int]:
    """Return the indices of the statements that fit the limit, lowest rank first."""
    kept: set[int] = set()
    room = _ALL_BYTES
    for place in sorted(range(len(found)), key=lambda n: (found[n].rank, n)):
        room -= len(found[place].text.encode(errors="replace")) + 5
        if room < 0:
            break
        kept.add(place)
    return kept


def _content(kept: Sequence[str]) -> str:
    if len(kept) == 1:
        return _clean(kept[0])
    return "\n".join((_TITLE, *(f"- {_clean(text)}" for text in kept)))


def _clean(text: str) -> str:
    return "".join(c for c in text if c.isprintable())
