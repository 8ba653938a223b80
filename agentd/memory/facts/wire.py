"""The request to a model that reads facts from a conversation, and the parsing of its answer. Pure.

In the request messages are `[1 user 2026-05-04 09:40] text` and `[2 agent …] text`, known facts are
`[k3f9 since 2026-01-02] sentence`, one a line; further lines of a message are indented. The answer
is a JSON array of objects `{op, content, category, message, quote, ids, subject, relation, value,
valid_from, valid_to}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Any

from msgspec import Struct

from agentd.core.fact import (
    Category,
    Evidence,
    Fact,
    FactOperation,
    FactSource,
    OperationKind,
    Triple,
)
from agentd.core.outside import replace_spans
from agentd.core.spans import Span
from agentd.core.times import FIRST_YEAR, LAST_YEAR
from agentd.core.turn import SessionKey
from agentd.engine.rendering import fence
from agentd.memory.facts.model_answer import line, number, objects
from agentd.memory.facts.quotes import Searched, is_short

MOST = 100  # objects accepted from one answer
USER_CHARS = 8_000  # shown of a user's message; longer ones contain pasted text
AGENT_CHARS = 800  # shown of an agent's message, more of its end than of its beginning
_MOST_OBJECTS = 10_000  # objects that are read at most
_MOST_CONTENT = 1_000  # characters: a fact is a sentence
_MOST_PART = 200  # characters of a subject, a relation or a value
_MOST_QUOTE = 8_000
_LEFT_OUT = "[…]"
_DATE = re.compile(r"(\d{4})(?:[-/.](\d\d?))?(?:[-/.](\d\d?))?(?!\d)")
_ID = re.compile(r"[\s\[]*(#?[\w-]+)")
_YEARS = range(FIRST_YEAR + 2, LAST_YEAR - 2)  # years whose end can be represented in every zone
_KNOWN, _SAID = "known facts", "conversation"
_ASK = "List now what this conversation changes in what is known."


class SpokenMessage(Struct, frozen=True):
    """One message of the conversation to be read. Only clean words of the user count as evidence.
    `quotations` are spans of somebody else's words, or that reveal a secret; those in `hidden` are
    never shown in a request. `withheld` counts the sentences that reveal secrets.
    """

    session: SessionKey
    seq: int
    at: datetime
    text: str
    is_user: bool
    is_clean: bool = True
    quotations: tuple[Span, ...] = ()
    hidden: tuple[Span, ...] = ()
    withheld: int = 0

    @property
    def is_secret(self) -> bool:
        """Whether the message consists of secrets, so that nothing of it can be shown."""
        return bool(self.withheld) and not any(
            map(str.isalnum, replace_spans(self.text, self.hidden, ""))
        )


class WireItem(Struct, frozen=True):
    """One object of an answer, as written. `name` is its position, "#1" for the first; `ids` of
    later objects can refer to it. `message` is None if no message is cited.
    """

    name: str
    op: OperationKind
    content: str
    category: Category
    message: int | None
    quote: str
    ids: tuple[str, ...]
    triple: Triple | None
    valid_from: str
    valid_to: str


def request(spoken: Sequence[SpokenMessage], known: Sequence[Fact], zone: tzinfo) -> str:
    """Return the text of the request."""
    said = "\n".join(_message_text(n, one, zone) for n, one in enumerate(spoken, start=1))
    facts = "\n".join(fact_line(fact, zone) for fact in known)
    parts = [fence(_KNOWN, facts)] if known else []
    return "\n\n".join((*parts, fence(_SAID, said), _ASK))


def fact_line(fact: Fact, zone: tzinfo) -> str:
    """Return a fact as models see it, in one line with its id and start date."""
    return f"[{fact.id} since {day(fact.valid_from, zone)}] {in_line(fact.text)}"


def in_line(text: str) -> str:
    """Return the text without line ends."""
    return " ".join(text.split())


def day(at: datetime, zone: tzinfo) -> str:
    """Return the date of a moment in the owner's zone."""
    return f"{at.astimezone(zone):%Y-%m-%d}"


def read(answer: str) -> tuple[tuple[WireItem, ...], int]:
    """Return the items of an answer, at most `MOST`, and how many objects were not usable."""
    found: list[WireItem] = []
    dropped = 0
    for place, data in enumerate(islice(objects(answer), _MOST_OBJECTS), start=1):
        item = _item(data, f"#{place}")
        if item is None or len(found) == MOST:
            dropped += 1
        else:
            found.append(item)
    return tuple(found), dropped


def operations(
    items: Sequence[WireItem],
    spoken: Sequence[SpokenMessage],
    source: FactSource,
    zone: tzinfo,
    asked: Evidence | None = None,
) -> Iterator[FactOperation]:
    """Yield an operation for each item, with the user's words that prove it, if any. `asked` are
    words by which the user asks for something to be remembered: they prove what is quoted from
    them, however short.
    """
    own = [Searched(one.text, one.quotations) if _is_own(one) else None for one in spoken]
    for item in items:
        found = [words.find(item.quote) if words is not None else None for words in own]
        evidence = _proof(item, spoken, found)
        if asked is not None and not evidence and any(found):
            evidence = (asked,)
        cited = _cited_message(item.message, spoken)
        at = evidence[0].at if evidence else cited.at if cited else spoken[-1].at
        since = _since(item.valid_from, zone)
        yield FactOperation(
            item.op,
            at,
            source,
            item.content,
            item.category,
            item.triple,
            item.ids,
            evidence,
            is_proven=bool(evidence),
            valid_from=since,
            valid_to=_until(item.valid_to, zone, since or at),
            name=item.name,
        )


def _proof(
    item: WireItem, spoken: Sequence[SpokenMessage], found: Sequence[Span | None]
) -> tuple[Evidence, ...]:
    """Return the evidence for a quote, given where it was found: in the cited message, or in the
    only other message that contains it. A short quote counts only as the answer to the agent's
    message before it.
    """
    cited = _cited_message(item.message, spoken)
    places = [(at, span) for at, span in enumerate(found) if span is not None]
    own = [(at, span) for at, span in places if spoken[at] is cited]
    if not own and len(places) != 1:
        return ()
    at, span = (own or places)[0]
    one = spoken[at]
    evidence = Evidence(one.at, one.session, one.seq, *span)
    if not is_short(item.quote):
        return (evidence,)
    before = spoken[at - 1] if at else None
    if before is None or before.is_user or not before.is_clean:
        return ()
    end = len(before.text)
    asked = Evidence(before.at, before.session, before.seq, 0, end, is_context=True)
    return (evidence, asked)


def _is_own(one: SpokenMessage) -> bool:
    return one.is_user and one.is_clean


def _cited_message(message: int | None, spoken: Sequence[SpokenMessage]) -> SpokenMessage | None:
    return spoken[message - 1] if message and 0 < message <= len(spoken) else None


def _message_text(count: int, one: SpokenMessage, zone: tzinfo) -> str:
    who = "user" if one.is_user else "agent"
    head = f"[{count} {who} {one.at.astimezone(zone):%Y-%m-%d %H:%M}]"
    text = replace_spans(one.text, one.hidden, _LEFT_OUT)
    if one.is_user:
        text = _clip(text, USER_CHARS // 2, USER_CHARS // 2)
    else:
        text = _clip(text, AGENT_CHARS // 4, 3 * AGENT_CHARS // 4)
    lines = "\n  ".join(text.strip().splitlines())
    return f"{head} {lines}"


def _clip(text: str, head: int, tail: int) -> str:
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n{_LEFT_OUT}\n{text[-tail:]}"


def _item(data: dict[str, Any], name: str) -> WireItem | None:
    op = _op(data.get("op"))
    content = line(data.get("content"), _MOST_CONTENT)
    ids = _ids(data.get("ids", data.get("id")))
    if op is None or not (content if op in (OperationKind.ADD, OperationKind.REPLACE) else ids):
        return None
    quote = data.get("quote")
    return WireItem(
        name,
        op,
        content,
        _category(data.get("category")),
        number(data.get("message")),
        quote if isinstance(quote, str) and len(quote) <= _MOST_QUOTE else "",
        ids,
        _triple(data),
        line(data.get("valid_from"), _MOST_PART),
        line(data.get("valid_to"), _MOST_PART),
    )


def _op(value: Any) -> OperationKind | None:
    if value is None:
        return OperationKind.ADD
    name = value.strip().casefold() if isinstance(value, str) else ""
    return OperationKind(name) if name in set(OperationKind) else None


def _category(value: Any) -> Category:
    name = value.strip().casefold() if isinstance(value, str) else ""
    return Category(name) if name in set(Category) else Category.PERSONAL


def _ids(value: Any) -> tuple[str, ...]:
    """Return the ids of a list, or of a text with commas; accepts the forms `[k3f9 since …]` and
    `{"id": "k3f9"}`.
    """
    listed = value if isinstance(value, list) else [value]
    given = [one.get("id") if isinstance(one, dict) else one for one in listed]
    texts = (str(one) if type(one) is int else line(one, _MOST_PART) for one in given)
    named = (_ID.match(part) for text in texts for part in text.split(","))
    return tuple(dict.fromkeys(found[1] for found in named if found))


def _triple(data: dict[str, Any]) -> Triple | None:
    parts = [line(data.get(name), _MOST_PART) for name in ("subject", "relation", "value")]
    return Triple(*parts) if all(parts) else None


def _since(text: str, zone: tzinfo) -> datetime | None:
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day = (int(part) if part else 1 for part in found.groups())
    if year not in _YEARS:
        return None
    try:
        return datetime(year, month, day, tzinfo=zone)
    except ValueError:
        return None


def _until(text: str, zone: tzinfo, since: datetime) -> datetime | None:
    """Return the end of the day, month or year named; None if it is before the beginning."""
    found, first = _DATE.match(text), _since(text, zone)
    if found is None or first is None:
        return None
    days = 1 if found[3] else 31 if found[2] else 366
    end = first + timedelta(days=days)
    if not found[3]:  # the first of the next month, or year
        end = end.replace(day=1) if found[2] else end.replace(month=1, day=1)
    return end if end > since else None
