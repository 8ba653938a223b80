"""A model service that answers at once, as a process of its own: `python -m
benchmarks.instant_model`.

It prints its port, then speaks just enough of the Messages API over HTTP, and of chat completions
for agents that speak nothing else: every request is answered by one short text. A request for the
model `stall` begins an answer and never ends it; the model `noting` first adds a line to today's
note. `GET` returns the newest request's body.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import count

STALL = "stall"
NOTING = "noting"
_ANSWER = "All is well here."
_LISTS = (  # what ends requests that want a list: there is nothing to mark, to learn or to join
    b"Mark now what says one of these facts.",
    b"List now what this conversation changes in what is known.",
    b"Say now which of these belong together.",
)
_SILENT = "NO_REPLY"  # what a flush that has nothing to store answers

_newest = [b"{}"]
_numbers = count()


def event(kind: str, **fields: object) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def start(input_tokens: int) -> bytes:
    """The event that begins an answer."""
    usage = {"input_tokens": input_tokens, "output_tokens": 1}
    message: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "instant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return event("message_start", message=message)


def _answer(text: str, input_tokens: int) -> bytes:
    block = {"type": "text", "text": ""}
    return _streamed(block, {"type": "text_delta", "text": text}, "end_turn", input_tokens)


def _noting(number: int, input_tokens: int) -> bytes:
    """A call that adds a line to today's note."""
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "memory_write", "input": {}}
    arguments = json.dumps({"content": f"Number {number} was asked about."})
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return _streamed(block, delta, "tool_use", input_tokens)


def _streamed(
    block: dict[str, object], delta: dict[str, object], reason: str, input_tokens: int
) -> bytes:
    return b"".join(
        (
            start(input_tokens),
            event("content_block_start", index=0, content_block=block),
            event("content_block_delta", index=0, delta=delta),
            event("content_block_stop", index=0),
            event(
                "message_delta",
                delta={"stop_reason": reason, "stop_sequence": None},
                usage={"output_tokens": 5},
            ),
            event("message_stop"),
        )
    )


def completion(*, streamed: bool, input_tokens: int) -> bytes:
    """The same answer as a whole response of chat completions."""
    kind = "chat.completion.chunk" if streamed else "chat.completion"
    made: dict[str, object] = {"id": "c1", "object": kind, "created": 1, "model": "instant"}
    usage = {"prompt_tokens": input_tokens, "completion_tokens": 5}
    usage["total_tokens"] = sum(usage.values())
    said = {"role": "assistant", "content": _ANSWER}
    if not streamed:
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        body = json.dumps({**made, "choices": [choice], "usage": usage}).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        return head % len(body) + body
    pieces: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    lines = [f"data: {json.dumps({**made, **piece})}\n\n".encode() for piece in pieces]
    return HEAD + chunk(b"".join(lines) + b"data: [DONE]\n\n") + chunk(b"")


def chunk(data: bytes) -> bytes:
    """A piece of a body; an empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"request-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n"
)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if head.startswith(b"get"):
                head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(_newest[0])
                writer.write(head + _newest[0])
                continue
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            body = _newest[0] = await reader.readexactly(length)
            asked = json.loads(body)
            if "model" not in asked:  # agents of others ask what kind of service this is
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                continue
            if b"/chat/completions " in head:
                streamed = bool(asked.get("stream"))
                writer.write(completion(streamed=streamed, input_tokens=length // 4))
                continue
            if asked["model"] == STALL:
                writer.write(HEAD + chunk(start(length // 4)))
                continue
            text = _SILENT if _SILENT.encode() in body else _ANSWER
            if any(asked_for in body for asked_for in _LISTS):
                text = "[]"
            answer = _answer(text, length // 4)
            if (
                asked["model"] == NOTING
                and b"tool_result" not in json.dumps(asked["messages"][-1]).encode()
            ):
                answer = _noting(next(_numbers), length // 4)
            writer.write(HEAD + chunk(answer) + chunk(b""))
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
