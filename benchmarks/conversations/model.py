"""A competent model that knows a conversation by heart: it answers as a careful reader would.

It says nothing of the agent's own lines, of tools, documents or what is supposed or quoted, because
nothing is expected of them; so its figures say what the program makes of right answers, not how a
model reads.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from benchmarks.conversations.conversation import Conversation, Expected, Turn, fits, normal

CLIPS = "clips"  # the folder of what tools put out
_MESSAGE = re.compile(r"^\[(\d+) (user|agent) (\d{4}-\d\d-\d\d \d\d:\d\d)\] ?", re.MULTILINE)
_KNOWN = re.compile(r"^\[(\S+) since (\d{4}-\d\d-\d\d)\] (.+)$", re.MULTILINE)
_GOING = re.compile(r"^\[(\w+)\] (.+)$", re.MULTILINE)
_CANDIDATE = re.compile(r"^\[(\d+) ([^\]\s]+:\d+)\] ?", re.MULTILINE)
_TOLD = re.compile(r"\[(\w+) since \d{4}-\d\d-\d\d\] ([^\n]+)")
_LISTED = re.compile(r"^\W*(\w{4,}): (.+)$", re.MULTILINE)
_FENCE = re.compile(r"\n</data[^\n]*>")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_SILENT = "NO_REPLY"
_LEFT_OUT = normal("[…]")

Json = dict[str, Any]


class Message(Struct, frozen=True):
    """One message of a request to learn."""

    number: int
    is_user: bool
    text: str


class Answer(Struct, frozen=True):
    """What is said, and the tool that is called."""

    text: str = ""
    tool: str = ""
    input: Json = field(default_factory=dict)


Items = Callable[[Sequence[Json], Sequence[Message], Mapping[str, str]], list[Json]]


class Model:
    """Answers every request about one conversation. `learnt` keeps the words of each request to
    learn, `forgot` of each to mark what is to be forgotten. `spoil` may change the items of an
    answer.
    """

    def __init__(self, conversation: Conversation, spoil: Items | None = None) -> None:
        self.learnt: list[str] = []
        self.forgot: list[str] = []
        self._conversation = conversation
        self._by_text = {normal(turn.user): turn for turn in conversation.turns() if turn.user}
        self._attached = {turn.attached: turn for turn in conversation.turns() if turn.attached}
        self._spoil = spoil

    def answer(self, body: Json) -> Answer:
        """The reply to one request to the service."""
        blocks = [text for message in body["messages"] for text in _texts(message["content"])]
        if not body.get("tools"):
            return Answer(self._aside(blocks))
        words, results = _last(body["messages"])
        system = "\n".join(_texts(body.get("system", "")))
        if _SILENT in system or any(_SILENT in text for text in words):
            return Answer(_SILENT)
        if any("HEARTBEAT_OK" in text for text in words):
            return Answer("HEARTBEAT_OK")
        turn = self._turn(words)
        return self._chat(turn, "\n".join((system, *blocks)), results)

    def items(self, messages: Sequence[Message], known: Mapping[str, str]) -> list[Json]:
        """What the messages say, as objects of an answer, one for each fact."""
        turns = [(m, turn) for m in messages if m.is_user and (turn := self._of(m.text))]
        said = {fact.id for _, turn in turns for fact in turn.knows}
        gone = {
            old
            for _, turn in turns
            for old in (*turn.ends, *(old for fact in turn.knows for old in fact.replaces))
            if old in said
        }
        found: list[Json] = []
        for message, turn in turns:
            found += self._ends(message, turn, known)
            found += self._repeats(message, turn, known)
            for fact in turn.knows:
                if fact.id not in gone:
                    found.append(self._state(message, fact, known))
        return found

    def _aside(self, blocks: Sequence[str]) -> str:
        """The answer to a question that is no turn: to learn, to mark, or to sum up."""
        text = next((text for text in reversed(blocks) if _MESSAGE.search(text)), "")
        if text:
            self.learnt.append(text)
            return self._learn(text)
        text = next((text for text in reversed(blocks) if _CANDIDATE.search(text)), "")
        if text:
            self.forgot.append(text)
            return json.dumps(self._mark(text), ensure_ascii=False)
        return f"Summary of {len(blocks)} messages. " + "so " * 40

    def _learn(self, text: str) -> str:
        messages = tuple(said_in(text))
        known = {match[1]: match[3] for match in _KNOWN.finditer(text)}
        items = self.items(messages, known)
        if self._spoil is not None:
            items = self._spoil(items, messages, known)
        return json.dumps(items, ensure_ascii=False)

    def _mark(self, text: str) -> list[Json]:
        going = [match[2] for match in _GOING.finditer(text)]
        facts = [f for f in self._conversation.facts.values() if any(map(f.is_said_by, going))]
        marked: list[Json] = []
        for number, candidate in _blocks(_CANDIDATE, text):
            marked += [
                {"n": int(number), "span": sentence.strip()}
                for sentence in _SENTENCE.findall(candidate)
                if any(fits(sentence, fact.keywords) for fact in facts)
            ]
        return marked

    def _chat(self, turn: Turn | None, told: str, results: Sequence[str]) -> Answer:
        if turn is None:
            return Answer("All right.")
        done = len(results)
        if turn.forgets and (call := self._forget(turn, told, results)):
            return call
        if turn.asks_to_keep and not done:
            says = " ".join(fact.text for fact in turn.knows)
            quote = turn.knows[0].quote
            return Answer(tool="remember", input={"text": says, "quote": quote})
        if turn.tool and not done:
            path = clip(turn.tool)
            return Answer(tool="memory_read", input={"path": path})
        return Answer(turn.agent or "All right.")

    def _forget(self, turn: Turn, told: str, results: Sequence[str]) -> Answer | None:
        """Name the fact by its id if that was told, else by its words; choose from a list once."""
        facts = [self._conversation.facts[fact_id] for fact_id in turn.forgets]
        listed = _LISTED.findall(results[0]) if results else _TOLD.findall(told)
        ids = [fact_id for fact_id, text in listed for fact in facts if fact.is_said_by(text)]
        if not results:
            query = " ".join(fact.text for fact in facts)
            return Answer(tool="forget", input={"query": query} | ({"ids": ids} if ids else {}))
        if len(results) == 1 and ids:
            return Answer(tool="forget", input={"query": ids[0], "ids": ids})
        return None

    def _ends(self, message: Message, turn: Turn, known: Mapping[str, str]) -> Iterator[Json]:
        for old in turn.ends:
            if ids := self._ids(old, known):
                yield {"op": "end", "message": message.number, "quote": turn.user, "ids": ids}

    def _repeats(self, message: Message, turn: Turn, known: Mapping[str, str]) -> Iterator[Json]:
        for old in turn.repeats:
            if ids := self._ids(old, known):
                yield {"op": "same", "message": message.number, "quote": turn.user, "ids": ids}

    def _state(self, message: Message, fact: Expected, known: Mapping[str, str]) -> Json:
        cited = {"message": message.number, "quote": fact.quote}
        if there := self._ids(fact.id, known):
            return {"op": "same", **cited, "ids": there}
        stated = {**cited, "content": fact.text, "category": fact.category}
        if fact.triple:
            stated |= dict(zip(("subject", "relation", "value"), fact.triple, strict=True))
        if fact.valid_to:
            stated["valid_to"] = fact.valid_to
        olds = [i for old in fact.replaces for i in self._ids(old, known)]
        return {"op": "replace", **stated, "ids": olds} if olds else {"op": "add", **stated}

    def _ids(self, expected: str, known: Mapping[str, str]) -> list[str]:
        """The known facts that say the expected one."""
        text = normal(self._conversation.facts[expected].text)
        return [fact_id for fact_id, said in known.items() if normal(said) == text]

    def _of(self, text: str) -> Turn | None:
        """The turn with this message, of which the middle may have been left out."""
        said = normal(text)
        if _LEFT_OUT in said:
            head = said.partition(_LEFT_OUT)[0].rstrip()
            return next((turn for own, turn in self._by_text.items() if own.startswith(head)), None)
        return self._by_text.get(said)

    def _turn(self, words: Sequence[str]) -> Turn | None:
        for text in reversed(words):
            for attached, turn in self._attached.items():
                if attached in text:
                    return turn
            if found := self._of(text):
                return found
        return None


def said_in(text: str) -> Iterator[Message]:
    """The messages of a request to learn."""
    for match, body in _spans(_MESSAGE, text):
        lines = "\n".join(line.removeprefix("  ") for line in body.split("\n"))
        yield Message(int(match[1]), match[2] == "user", lines.strip())


def clip(text: str) -> str:
    """The path of the file that holds what a tool puts out."""
    return f"{CLIPS}/{zlib.crc32(text.encode())}.md"


def _blocks(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    for match, body in _spans(pattern, text):
        yield match[1], body


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each match with the text up to the next one, or to the end of its fence."""
    matches = list(pattern.finditer(text))
    for at, match in enumerate(matches):
        end = matches[at + 1].start() if at + 1 < len(matches) else len(text)
        yield match, _FENCE.split(text[match.end() : end])[0]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _last(messages: Sequence[Json]) -> tuple[list[str], list[str]]:
    """The texts of the user's last message, and what tools have put out since."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user" and (texts := _texts(messages[at]["content"])):
            since = [block for m in messages[at + 1 :] for block in m["content"]]
            results = [b["content"] for b in since if isinstance(b, dict) and "tool_use_id" in b]
            return texts, [" ".join(_texts(result)) for result in results]
    return [], []
