"""Clients that send what they should not, one after the other, and a good one beside them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.harness import Client, Gone, Refused
from tests.frames.examples import TALKING, own
from tests.frames.judging import Judge, Owed, owed
from tests.frames.making import Maker

_LINES, _CALLS = 48, 24  # of one burst; more calls would only be told that the daemon is busy
_PATIENCE = 30.0  # seconds without a frame that is owed
_FOLLOWS = "_agentd/logs/follow"  # answered only when it is taken back
GOOD = "chat:good"
# What costs more than some milliseconds, or destroys something: how often it may be asked for among
# so many frames.
AMONG = 12_500
MOST = {
    "session/prompt": 100,
    "session/new": 40,
    "session/fork": 20,
    "session/delete": 10,
    "_agentd/sessions/import": 40,
    "_agentd/sessions/delete": 10,
    "_agentd/sessions/reset": 10,
    "_agentd/sessions/compact": 10,
    "_agentd/sessions/flush": 10,
    "_agentd/memory/forget": 5,
    "_agentd/memory/index": 10,
    "_agentd/memory/search": 60,
    "_agentd/memory/restore": 20,
    "_agentd/memory/write": 60,
    "_agentd/facts/add": 60,
    "_agentd/facts/import": 40,
    "_agentd/facts/import-graph": 20,
    "_agentd/facts/take": 20,
    "_agentd/facts/forget": 10,
    "_agentd/facts/validate": 10,
    "_agentd/heartbeat/run": 10,
    "_agentd/jobs/add": 60,
    "_agentd/jobs/run": 20,
    "_agentd/alerts/test": 10,
    "_agentd/backup": 2,
    "_agentd/doctor": 5,
    "_agentd/reload": 10,
}

Json = dict[str, Any]


@dataclass
class Allowance:
    """Which calls may be made. `most` bounds how often those are that cost much or destroy
    something. Never: an end of the daemon, a backup to where this test has no business, a model
    made anew.
    """

    folder: str
    most: Mapping[str, int]
    made: Counter[str] = field(default_factory=Counter)  # those that were not allowed, too

    def takes(self, one: Owed) -> bool:
        """Whether the line may be sent."""
        if one.call is None:
            return True
        method, params = one.call
        self.made[method] += 1
        if method == "_agentd/stop" and not params.keys() - {"_meta"}:
            return False
        if method == "_agentd/memory/index" and params.get("export_onnx"):
            return False
        file = params.get("file")
        if method == "_agentd/backup" and isinstance(file, str) and file.startswith("/"):
            return file.startswith(f"{self.folder}/") and self._has_room(method)
        return self._has_room(method)

    def _has_room(self, method: str) -> bool:
        return self.made[method] <= self.most.get(method, self.made[method])


@dataclass
class Told:
    """What a campaign found."""

    frames: int = 0
    connections: int = 0
    closed: int = 0
    owed: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # seconds that the good client waited

    def __str__(self) -> str:
        waits = sorted(self.waits) or [0.0]
        worst, usual = waits[-1] * 1000, waits[len(waits) // 2] * 1000
        return (
            f"{self.frames} frames, {self.connections} connections, {self.closed} closed by the "
            f"daemon; owed {dict(self.owed)}; came {dict(self.answers)}; wrong {len(self.wrong)}; "
            f"a good client waited {usual:.1f} ms in the middle, {worst:.0f} ms at most"
        )


class Visit:
    """One connection of a bad client."""

    def __init__(
        self, judge: Judge, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], seed: int
    ) -> None:
        self.judge = judge
        self.has_ended = False
        self.progress = asyncio.Event()
        self._reader, self._writer = streams
        self._has_finished = False
        self._held: list[bytes] | None = None  # frames that wait for the end of a burst
        self._chance = random.Random(seed)
        self._rest = b""
        self._taken_back: set[str] = set()

    async def read(self) -> None:
        """Hold all that comes against what is owed, until the daemon closes."""
        try:
            while data := await self._reader.read(1 << 16):
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))
                self.progress.set()
        except OSError:
            pass  # it is the same end
        self.has_ended = True
        self.progress.set()

    async def write(self, data: bytes) -> None:
        """Send the bytes, in one write or in several."""
        # Of a burst nothing may be allowed, and then there is nothing to cut.
        most = min(len(data), self._chance.choice((0, 0, 1, 3)))
        cuts = sorted(self._chance.sample(range(len(data)), most))
        self._held = []  # a frame between two parts would cut a line in two
        try:
            for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
                self._writer.write(data[start:end])
                await self._writer.drain()
                if cuts:
                    await asyncio.sleep(0)
        except OSError:
            pass  # it has closed: whether it may have, the judge says
        held, self._held = self._held, None
        if data.endswith(b"\n"):
            self._writer.writelines(held)

    def finish(self) -> None:
        """Send no more, and read on: questions that come then stay without an answer."""
        self._has_finished = True
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    def leave(self) -> None:
        """Be gone."""
        self._writer.transport.abort()

    def take_back_what_follows(self) -> None:
        """Calls that are answered only then."""
        for call_id in self.judge.only_open(_FOLLOWS):
            if (known := json.dumps(call_id)) not in self._taken_back:
                self._taken_back.add(known)
                frame = {"method": "$/cancel_request", "params": {"requestId": call_id}}
                self._send(frame)

    def _hear(self, frame: Json) -> None:
        if "method" not in frame:
            self.judge.hear(frame)
        elif "id" in frame:
            self._reply(frame["id"])

    def _reply(self, number: Any) -> None:
        """Answer a question of the daemon's, well or badly."""
        replies: tuple[Json, ...] = (
            {"result": {"outcome": {"outcome": "cancelled"}}},
            {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}},
            {"result": {"outcome": {"outcome": "selected", "optionId": ["?"]}}},
            {"result": {"outcome": "selected"}},
            {"result": None},
            {"result": "yes"},
            {"error": {"code": "?", "message": 5}},
            {"error": None},
        )
        self._send({"id": number, **self._chance.choice(replies)})

    def _send(self, frame: Json) -> None:
        if self._has_finished:
            return
        line = json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n"
        if self._held is not None:
            self._held.append(line)
        else:
            self._writer.write(line)


class Campaign:
    """Bad clients at one socket. A line may have `longest` bytes."""

    def __init__(self, socket: Path, maker: Maker, allowance: Allowance, longest: int) -> None:
        self.patience = _PATIENCE
        self.told = Told()
        self._socket = socket
        self._maker = maker
        self._allowance = allowance
        self._longest = longest

    @property
    def methods(self) -> set[str]:
        """Those that were called, or would have been."""
        return set(self._allowance.made)

    async def run(self, frames: int, good: Client) -> None:
        """Send so many frames, a connection after the other; the good client asks meanwhile."""
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": GOOD}}
        await self._patiently(good.start("session/new", place))
        while self.told.frames < frames and len(self.told.wrong) < 20:
            began = time.perf_counter()
            answer = good.start("session/list")
            answer.add_done_callback(
                lambda _, began=began: self.told.waits.append(time.perf_counter() - began)
            )
            await self._visit()
            if self.told.connections % 20 == 0:
                await self._hello(good, GOOD)
            assert (await self._patiently(answer))["sessions"]
            good.lines.clear()  # which would grow with what was said

    async def greet_all(self, good: Client) -> int:
        """Say hello in every session there is; each must answer. Returns how many there are."""
        listed = await self._patiently(good.start("_agentd/sessions/list"))
        keys = [session["key"] for session in listed["sessions"]]
        for key in keys:
            place = {"sessionId": key, "cwd": "/", "mcpServers": []}
            await self._patiently(good.start("session/resume", place))
            await self._hello(good, key)
            await self._patiently(good.start("session/close", {"sessionId": key}))
        return len(keys)

    async def _hello(self, good: Client, key: str) -> None:
        prompt = [{"type": "text", "text": "hello"}]
        try:
            asked = good.start("session/prompt", {"sessionId": key, "prompt": prompt})
            answer = await self._patiently(asked)
        except (Refused, Gone, TimeoutError) as error:
            self.told.wrong.append(f"session {key!r} is dead: {error!r}")
            return
        if answer["stopReason"] != "end_turn" or not answer["_meta"]["agentd/text"]:
            self.told.wrong.append(f"session {key!r} answered {answer}")

    async def _patiently(self, answer: asyncio.Future[Any]) -> Any:
        async with asyncio.timeout(self.patience):
            return await answer

    async def _visit(self) -> None:
        judge = Judge(self._longest)
        streams = await asyncio.open_unix_connection(str(self._socket), limit=1 << 20)
        visit = Visit(judge, streams, self._maker.chance.getrandbits(32))
        self.told.connections += 1
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(visit.read())
            for _ in range(self._maker.chance.choice((1, 2, 4, 8, 16, 32))):
                await visit.write(self._burst(judge) + b"\n")
                await self._settle(visit)
                if judge.ends or judge.may_end or visit.has_ended or judge.wrong:
                    break
            await self._part(visit)
            visit.leave()
            reading.cancel()
        self.told.answers += judge.answers
        self.told.wrong += judge.wrong
        self.told.closed += judge.ends

    async def _part(self, visit: Visit) -> None:
        """End the connection in one of the ways that clients have."""
        judge = visit.judge
        if visit.has_ended and not judge.ends:
            judge.wrong.append("closed for no reason")
        if judge.ends and not judge.wrong:
            await self._until(visit, lambda: visit.has_ended, "the end")
            judge.end()
        elif not (visit.has_ended or judge.wrong or judge.may_end):
            way = self._maker.chance.random()
            if way < 0.3:  # the last line is not ended, and no more comes
                await visit.write(self._burst(judge))
                visit.finish()
                await self._settle(visit)
                await self._until(visit, lambda: visit.has_ended, "the end")
            elif way < 0.4:  # gone in the middle of it all
                await visit.write(self._burst(judge))

    def _burst(self, judge: Judge) -> bytes:
        """Lines, the last without its end."""
        lines: list[bytes] = []
        calls = 0
        while len(lines) < _LINES and calls < _CALLS and not (judge.ends or judge.may_end):
            for line in self._maker.line().split(b"\n"):
                one = owed(line, self._longest)
                if self._allowance.takes(one):
                    judge.send(line, one)
                    self.told.owed[one.kind] += not judge.ends or one.closes
                    lines.append(line)
                    calls += one.kind == "answer"
        self.told.frames += len(lines)
        return b"\n".join(lines)

    async def _settle(self, visit: Visit) -> None:
        await self._until(
            visit, lambda: visit.has_ended or not visit.judge.waits_for(), "the answers"
        )

    async def _until(self, visit: Visit, holds: Callable[[], bool], what: str) -> None:
        """Return when it holds, or note that it does not."""
        while not holds():
            visit.progress.clear()
            visit.take_back_what_follows()
            try:
                async with asyncio.timeout(self.patience):
                    await visit.progress.wait()
            except TimeoutError:
                visit.judge.wrong.append(f"waited in vain for {what}: {visit.judge.waits_for()}")
                return


def bad_clients(socket: Path, folder: str, seed: int, frames: int, longest: int) -> Campaign:
    """Bad clients that will send so many frames to the daemon whose things are in `folder`."""
    more = max(1, frames // AMONG)
    allowance = Allowance(folder, {method: count * more for method, count in MOST.items()})
    examples = (*TALKING * 3, *own(folder))
    maker = Maker(seed, examples, longest, lambda method: 0.1 if method in MOST else 1.0)
    return Campaign(socket, maker, allowance, longest)
