"""A model service that knows the talk by heart, as a process: `python -m benchmarks.learning_talk.model FILE`.

It prints its port and writes every request it gets to `FILE.log`. It answers turns as the script says.
Asked for facts it is gullible: beside what the user told it lists what it was lured to, things that the
assistant has said, and sometimes its JSON is damaged.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.instant_model import HEAD, chunk, event, start

_MESSAGE = re.compile(r'<data source="message (\d+), [^"]*">\n(.*?)\n</data>', re.DOTALL)
_FORGET = re.compile(r"Forget (?:that|what I told you about) (.+)")
_SILENT = "NO_REPLY"
_NUMBERS = itertools.count(1)

Json = dict[str, Any]


class Model:
    """What the script says. `facts` are objects by sentence, `lures` by value, `turns` by text."""

    def __init__(self, told: Json) -> None:
        self._turns: dict[str, Json] = told["turns"]
        self._facts: dict[str, Json] = told["facts"]
        self._lures: dict[str, Json] = told["lures"]
        self._assistant: list[Json] = told["assistant"]
        self._extractions = 0

    def answer(self, body: Json) -> tuple[str, tuple[str, Json] | None]:
        """What is said, and the tool that is called."""
        texts = [text for message in body["messages"] for text in _texts(message["content"])]
        found = [match for text in texts for match in _MESSAGE.finditer(text)]
        if found and not body.get("tools"):
            return self._extracted([(int(m[1]), m[2]) for m in found]), None
        if not body.get("tools"):
            return f"Summary of {len(texts)} messages. " + "so " * 40, None
        words, is_answered = _last(body["messages"])
        if _SILENT in json.dumps(body["system"]) or _SILENT in words:
            return _SILENT, None
        if "HEARTBEAT_OK" in words:
            return "HEARTBEAT_OK", None
        asked = _FORGET.match(words)
        if asked and not is_answered:
            return "", ("forget", {"query": asked[1]})
        turn = self._turns.get(words, {})
        if turn.get("tool") and not is_answered:
            return "", (turn["tool"], turn["input"])
        return turn.get("answer", "All right."), None

    def _extracted(self, messages: list[tuple[int, str]]) -> str:
        self._extractions += 1
        found: list[Json] = []
        for number, text in messages:
            found += [
                fact | {"message": number} for said, fact in self._facts.items() if said in text
            ]
            found += [fact | {"message": number} for v, fact in self._lures.items() if v in text]
        if self._assistant:
            lure = self._assistant[self._extractions % len(self._assistant)]
            found.append(lure | {"message": messages[self._extractions % len(messages)][0]})
        listed = [json.dumps(fact, ensure_ascii=False) for fact in found]
        match self._extractions % 5:
            case 1:
                return "Here they are:\n```json\n[" + ",\n".join(listed) + "]\n```\nAnything else?"
            case 2:
                return "[" + ", ".join([*listed, '{"message": 1, "content": "The user']) + ""
            case 3:
                return "[" + ",".join(["{'content' 'broken", *listed]) + ",]"
            case 4:
                return "\n".join(listed)
        return f"[{', '.join(listed)}]"


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _last(messages: list[Json]) -> tuple[str, bool]:
    """The user's last words, and whether a tool has answered since."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user" and (texts := _texts(messages[at]["content"])):
            return texts[-1].strip(), at < len(messages) - 1
    return "", False


def _stream(text: str, call: tuple[str, Json] | None, size: int) -> bytes:
    number = next(_NUMBERS)
    events = [start(size // 4)]
    if text:
        events += _block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    if call:
        name, given = call
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        events += _block(int(bool(text)), block, delta)
    stop = "tool_use" if call else "end_turn"
    usage = {"output_tokens": 5 + len(text) // 4}
    events.append(event("message_delta", delta={"stop_reason": stop}, usage=usage))
    events.append(event("message_stop"))
    return b"".join(events)


def _block(index: int, block: Json, delta: Json) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=block),
        event("content_block_delta", index=index, delta=delta),
        event("content_block_stop", index=index),
    ]


async def main(file: Path) -> None:
    """Serve until killed."""
    model = Model(json.loads(file.read_text("utf-8")))
    with Path(f"{file}.log").open("ab", buffering=0) as log:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                    body = await reader.readexactly(length)
                    log.write(body + b"\n")
                    text, call = model.answer(json.loads(body))
                    writer.write(HEAD + chunk(_stream(text, call, length)) + chunk(b""))
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1])))
