"""A model behind the Messages API, and that of chat completions, that does what the user's last
words say, and remembers what it was asked.

It lives in a process of its own and survives the daemon's deaths. Nothing is left to chance: the
same conversation always gets the same answer. Words it understands, at the start of the user's last
text:

    say TEXT                   answers TEXT
    write TEXT                 memory_write of TEXT, then `done`
    three A B C                three memory_writes at once, then `done`
    do STEP; STEP; …           one step after the other; `&` joins calls of one step. A step is a
                               `write TEXT`, `add PATH TEXT`, `put PATH TEXT`, `patch PATH OLD NEW`,
                               `read PATH`, `search JSON`, `use TOOL JSON`, `tell TEXT` (notify), `half TEXT` (a write
                               with half of a surrogate pair), `slash TEXT` (a write whose id holds
                               a blank and a slash) or a last `say TEXT`
    gate NAME                  answers `passed NAME` once GET /…/open/NAME was called
    hang NAME                  begins an answer and never ends it; the next time it says `hung NAME`
    slow N                     N words, 20 ms apart
    bits TEXT                  answers TEXT, three letters an event
    long N                     answers N letters in one event
    flood N                    answers N letters, one an event
    large N                    memory_write of N letters in lines of 100, then `done`
    fail STATUS, flaky STATUS  an HTTP error, always or the first time only
    cut NAME                   an answer that breaks off, the first time
    obey use TOOL JSON         that call, then whatever the prompt orders (`obedient.py`)
    half TEXT                  answers TEXT with half of a surrogate pair before and behind it
    count N                    answers `counted`, and that it had read N tokens

Where facts are read out of messages, `learn TEXT` is a fact TEXT that nothing proves, and `my THING
is VALUE` one that replaces what is known of the THING. Flushes write one canary with all words like
`mark-NAME` that they see, and reply NO_REPLY, summaries repeat every identifier, heartbeats do what
the checklist's `- [ ] report TEXT`, `- [ ] do …` or anything else (HEARTBEAT_OK) asks, jobs their
own words. The part of the URL before `/v1` names who asks, so that many daemons can share one
server.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

if __package__:
    from tests.e2e import chat_completions, obedient
else:  # the process of its own, which is started by its file
    import chat_completions
    import obedient

CANARY = "canary-of-the-flush"  # with the asker's name behind it
WHISPER = "whispered-while-flushing"
_IDENTIFIER = re.compile(r"[\w./:@~-]*\d{4,}[\w./:@~-]*|https?://\S+|[\w.@~-]*(?:/[\w.@-]+)+")
_LEARN = re.compile(r"^\[\d+ user [^\]]*\] learn (.+)$", re.MULTILINE)
_TOLD = re.compile(r"^\[(\d+) user [^\]]*\] (my (.+?) is (.+?))\.?$", re.MULTILINE)
_KNOWN = re.compile(r"^\[(\w+) since [^\]]*\] (.+)$", re.MULTILINE)
_CANDIDATES = '<data source="candidates">'
_GOES = re.compile(r"^\[\w+\] (.+?)\.?$", re.MULTILINE)
_CANDIDATE = re.compile(r"^\[(\d+) [^\]]+\] (.+)$", re.MULTILINE)
_MARK = re.compile(r"mark-\w+")
_SEEN_FIRST = "Read it with memory_read"  # what a refusal of a patch names as its cure
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many"}

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One answer. `calls` are (tool, input); `pause` seconds stand between the words."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    status: int = 200
    pause: float = 0.0
    gate: str = ""
    hangs: bool = False
    cut: bool = False
    bits: int = 0  # letters of one event; 0: all of them
    read: int | None = None  # tokens that it claims to have read


@dataclass
class Model:
    """What the answers depend on besides the conversation: how often the same was asked."""

    rules: list[tuple[str, str]] = field(default_factory=list)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    gates: dict[tuple[str, str], asyncio.Event] = field(
        default_factory=lambda: defaultdict(asyncio.Event)
    )

    def answer(self, who: str, body: Json) -> Reply:
        """The reply to a request."""
        system = " ".join(_texts(body.get("system", "")))
        words, rounds = conversation(body["messages"])
        if _CANDIDATES in words:
            return Reply(json.dumps(marking(words)))
        if not body.get("tools"):
            learnt = learning(words)
            return Reply(json.dumps(learnt) if learnt else summary(body["messages"]))
        if "NO_REPLY" in system or "NO_REPLY" in words:
            return Reply("NO_REPLY") if rounds else flushing(who, body["messages"])
        if ("HEARTBEAT.md" in words or "## Job" in words) and "HEARTBEAT_OK" in words:
            words = _checklist(words)
        for start, replacement in self.rules:
            if words.startswith(start):
                words = replacement
                break
        if words.startswith("obey "):
            call = obedient.next_call(words, len(rounds), body)
            return Reply("working ", (call,)) if call else Reply("obeyed")
        return self._obey(who, words.strip(), rounds)

    def _obey(self, who: str, words: str, rounds: Sequence[Round]) -> Reply:
        verb, _, rest = words.partition(" ")
        first = not self.asked[who, words]
        match verb:
            case "do":
                return follow([step.strip() for step in rest.split(";")], rounds)
            case "write":
                return follow([words, "say done"], rounds)
            case "three":
                writes = " & ".join(f"write {word}" for word in rest.split())
                return follow([writes, "say done"], rounds)
            case "slow":
                return Reply(" ".join(f"word{n}" for n in range(int(rest))), pause=0.02)
            case "bits":
                return Reply(rest, bits=3)
            case "long":
                return Reply("x" * int(rest))
            case "flood":
                return Reply("x" * int(rest), bits=1)
            case "large":
                lines = "\n".join(["x" * 99] * (int(rest) // 100))
                write = "memory_write", {"content": lines}
                return Reply("done") if rounds else Reply("working ", (write,))
            case "half":
                return Reply(f"\ud800{rest}\udfff")
            case "count":
                return Reply("counted", read=int(rest))
            case "gate":
                return Reply(f"passed {rest}", gate=rest)
        self.asked[who, words] += 1
        match verb:
            case "hang":
                return Reply(f"hung {rest}", hangs=first)
            case "cut":
                return Reply(f"whole {rest} again", cut=first)
            case "fail":
                return Reply(status=int(rest))
            case "flaky":
                return Reply(f"after {rest}", status=int(rest) if first else 200)
        return Reply(rest if verb == "say" else f"heard: {words}")


@dataclass(frozen=True)
class Round:
    """Calls of the current turn and what came of them."""

    calls: tuple[str, ...]
    errors: tuple[str, ...]


def conversation(messages: Sequence[Json]) -> tuple[str, list[Round]]:
    """The user's last words, and the tool calls made since."""
    words, start = "", 0
    for number, message in enumerate(messages):
        if message["role"] == "user" and (texts := _texts(message["content"])):
            words, start = texts[-1], number
    rounds: list[Round] = []
    for number in range(start + 1, len(messages) - 1, 2):
        results = messages[number + 1]["content"]
        errors = tuple(" ".join(_texts(r["content"])) for r in results if r.get("is_error"))
        calls = tuple(b["name"] for b in messages[number]["content"] if b["type"] == "tool_use")
        rounds.append(Round(calls, errors))
    return words, rounds


def follow(steps: Sequence[str], rounds: Sequence[Round]) -> Reply:
    """The step that is next. A patch refused since the file was not read is preceded by a read."""
    done, reading = 0, False
    for made in rounds:
        if reading:
            reading = False
        elif any(_SEEN_FIRST in error for error in made.errors):
            reading = True
        else:
            done += 1
    step = steps[min(done, len(steps) - 1)]
    if reading:
        paths = [part.split()[1] for part in step.split("&") if part.split()[0] in ("patch", "put")]
        return Reply(calls=tuple(("memory_read", {"path": path}) for path in paths))
    if done >= len(steps) or step.startswith("say "):
        return Reply(step.removeprefix("say "))
    return Reply("working ", tuple(_call(part.strip()) for part in step.split("&")))


def learning(words: str) -> list[Json]:
    """What the request that reads facts is answered, where it shows something that is one."""
    items: list[Json] = [{"content": text} for text in _LEARN.findall(words)]
    known = _KNOWN.findall(words)
    for message, quote, thing, value in _TOLD.findall(words):
        head = f"The user's {thing} is "
        content = f"{head}{value}."
        ids = [fact_id for fact_id, text in known if text.startswith(head) and text != content]
        change = {"op": "replace", "ids": ids} if ids else {"op": "add"}
        triple = {"subject": "user", "relation": thing, "value": value}
        items.append(
            {**change, "message": int(message), "quote": quote, "content": content, **triple}
        )
    return items


def marking(words: str) -> list[Json]:
    """What the request that marks what to forget is answered: wherever the sentence of a fact
    stands.
    """
    facts, _, shown = words.partition(_CANDIDATES)
    return [
        {"n": int(n), "span": sentence}
        for n, text in _CANDIDATE.findall(shown)
        for sentence in _GOES.findall(facts)
        if sentence.casefold() in text.casefold()
    ]


def flushing(who: str, messages: Sequence[Json]) -> Reply:
    """What a flush is answered first: a canary and every `mark-…` of what it was shown."""
    shown = " ".join(itertools.chain.from_iterable(_texts(m["content"]) for m in messages))
    marks = " ".join(dict.fromkeys(_MARK.findall(shown)))
    content = f"{CANARY}-{who} kept {marks}"
    return Reply(f"{WHISPER} ", (("memory_write", {"content": content}),))


def summary(messages: Sequence[Json]) -> str:
    """Every identifier of the conversation, and enough words to be a summary."""
    text = " ".join(itertools.chain.from_iterable(_texts(m["content"]) for m in messages))
    names = dict.fromkeys(_IDENTIFIER.findall(text))
    return (
        f"Now: the conversation goes on after {len(text)} characters. "
        f"{'so ' * 30}\nExact: {' '.join(names)}"
    )


def _call(part: str) -> tuple[str, Json]:
    verb, *words = part.split()
    match verb:
        case "read":
            return "memory_read", {"path": words[0]}
        case "use":
            return words[0], json.loads(" ".join(words[1:]))
        case "search":
            return "memory_search", json.loads(" ".join(words))
        case "add":
            return "memory_write", {"target": words[0], "content": " ".join(words[1:])}
        case "put":
            content = " ".join(words[1:])
            return "memory_write", {"target": words[0], "content": content, "append": False}
        case "patch":
            path, old, new = words
            return "memory_write", {"target": path, "old_string": old, "new_string": new}
        case "half":
            return "memory_write", {"content": "\ud800" + " ".join(words)}
        case "slash":
            return "memory_write", {"content": " ".join(words), "_id": "toolu 1/"}
        case "tell":
            return "notify", {"text": " ".join(words)}
    return "memory_write", {"content": " ".join(words)}


def _checklist(words: str) -> str:
    for line in words.splitlines():
        item = line.removeprefix("- [ ] ")
        if item.startswith("report "):
            return f"say {item.removeprefix('report ')}"
        if item.startswith(("do ", "obey ")):
            return item
    return "say HEARTBEAT_OK"


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


class Server:
    """Speaks HTTP/1.1 to any number of daemons."""

    def __init__(self, model: Model, log: TextIO | None) -> None:
        self._model = model
        self._log = log
        self._ids = itertools.count(1)
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client leaves."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                path = lines[0].split(" ")[1]
                fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
                data = await reader.readexactly(int(fields.get("content-length", "0")))
                if not await self._answer(path, data, writer):
                    return
        except (asyncio.IncompleteReadError, OSError):
            return  # the daemon died or left, which is what this server is for
        finally:
            writer.close()

    async def _answer(self, path: str, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        who, _, rest = path.strip("/").partition("/")
        if rest.startswith("open/"):
            self._model.gates[who, rest.removeprefix("open/")].set()
            return await _send(writer, 200, b"{}")
        wire = path.split("?", maxsplit=1)[0].partition("/v1/")[2]
        if wire not in ("messages", "chat/completions"):
            return await _send(writer, 404, b"{}")
        body = json.loads(data)
        if wire == "chat/completions":
            body = chat_completions.messages_body(body)
        number = next(self._ids)
        if self._log:
            self._log.write(json.dumps({"n": number, "who": who, "body": body}) + "\n")
            self._log.flush()
        reply = self._model.answer(who, body)
        if reply.status != 200:
            kind = "overloaded_error" if reply.status in (429, 503, 529) else "api_error"
            error = {"type": "error", "error": {"type": kind, "message": "asked for"}}
            return await _send(writer, reply.status, json.dumps(error).encode())
        if wire == "messages":
            told = events_of(reply, number, str(body.get("model")), len(data) // 4)
            events = [_event(event) for event in told]
        else:
            calls = _named(reply, number)
            events = list(chat_completions.chunks(_pieces(reply), calls, number, len(data) // 4))
        return await self._stream(reply, who, events, writer)

    async def _stream(self, reply: Reply, who: str, events: list[bytes], writer: Any) -> bool:
        if reply.gate:
            await self._model.gates[who, reply.gate].wait()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        if reply.hangs or reply.cut:
            writer.write(head + _chunk(b"".join(events[:3])))
            await writer.drain()
            if reply.hangs:
                await asyncio.Event().wait()
            return False
        if not reply.pause:
            writer.write(head + _chunk(b"".join(events)) + b"0\r\n\r\n")
        else:
            writer.write(head)
            async for event in _paced(events, reply.pause):
                writer.write(_chunk(event))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def events_of(reply: Reply, number: int, model: str, read: int) -> Iterator[Json]:
    """The stream of an answer, as the service sends it."""
    usage = {"input_tokens": read if reply.read is None else reply.read, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    index = 0
    if reply.text:
        yield _opening(index, {"type": "text", "text": ""})
        for piece in _pieces(reply):
            yield _delta(index, {"type": "text_delta", "text": piece})
        yield {"type": "content_block_stop", "index": index}
        index += 1
    for id_, name, arguments in _named(reply, number):
        block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
        yield _opening(index, block)
        yield _delta(index, {"type": "input_json_delta", "partial_json": json.dumps(arguments)})
        yield {"type": "content_block_stop", "index": index}
        index += 1
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5 + index}}
    yield {"type": "message_stop"}


def _pieces(reply: Reply) -> list[str]:
    """The words of an answer, as they come."""
    if reply.bits:
        starts = range(0, len(reply.text), reply.bits)
        return [reply.text[start : start + reply.bits] for start in starts]
    words = reply.text.split(" ") if reply.pause else [reply.text]
    return [piece if not place else f" {piece}" for place, piece in enumerate(words)]


def _named(reply: Reply, number: int) -> list[tuple[str, str, Json]]:
    """The calls of an answer with their ids."""
    return [
        (
            arguments.get("_id", "toolu_") + f"{number}_{place}",
            name,
            {key: value for key, value in arguments.items() if key != "_id"},
        )
        for place, (name, arguments) in enumerate(reply.calls)
    ]


def _opening(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _event(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _paced(events: Sequence[bytes], pause: float) -> AsyncIterator[bytes]:
    for event in events:
        yield event
        await asyncio.sleep(pause)


async def _send(writer: asyncio.StreamWriter, status: int, data: bytes) -> bool:
    reason = _REASONS.get(status, "Said So")
    head = (
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: "
        f"application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)
    await writer.drain()
    return True


async def main(port: int, log: Path | None, script: Path | None) -> None:
    """Serve until killed; the first line on stdout is the port."""
    rules = json.loads(script.read_text("utf-8")) if script else []
    model = Model([(start, replacement) for start, replacement in rules])
    with (log or Path("/dev/null")).open("a", encoding="utf-8") as file:
        server = Server(model, file if log else None)
        listening = await asyncio.start_server(
            server.serve, "127.0.0.1", port, limit=64 * 1024 * 1024
        )
        print(listening.sockets[0].getsockname()[1], flush=True)
        await listening.serve_forever()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="A fake Messages API for tests and benchmarks.")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--log", type=Path, help="one JSON line for each request")
    options.add_argument(
        "--script", type=Path, help='JSON: [["words that begin", "words instead"]]'
    )
    given = options.parse_args(sys.argv[1:])
    asyncio.run(main(given.port, given.log, given.script))
