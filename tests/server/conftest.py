"""A server on a real socket, over a scripted engine."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from agentd.app.assembly.server import ClientUses, build_access
from agentd.core.compaction import CompactionReport
from agentd.core.event import TextChunk, TurnEnded, TurnStarted
from agentd.core.message import Text
from agentd.core.transcript import AvailableChoices, NewRow, RowRole
from agentd.core.turn import Receipt, StopReason, Turn, TurnRequest, Usage
from agentd.interfaces.acp.acp_sessions import SessionHooks
from agentd.interfaces.acp.hub import Hub
from agentd.interfaces.acp.peer import Clients
from agentd.interfaces.acp.permissions import Permissions
from agentd.interfaces.acp.server import Server
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.testing import FakeClock, MemorySessions

OFFER = AvailableChoices(("usual", "other"), ("low", "high"))


class ScriptedTurns:
    """An engine that says `words`, once `go` is set, and keeps what it was asked."""

    def __init__(self, store: MemorySessions, hub: Hub) -> None:
        self.store, self.hub = store, hub
        self.words = ["Hello", ", ", "you"]
        self.go = asyncio.Event()
        self.go.set()
        self.before_store: Callable[[], Awaitable[object]] | None = None
        self.before_end: Callable[[TurnRequest], Awaitable[None]] | None = None
        self.failure = None
        self.requests: list[TurnRequest] = []
        self.wishes: list[str] = []  # what was asked about the room in a context
        self.cancelled: list[str] = []
        self.cancelled_messages: list[str] = []
        self.refusal: Exception | None = None
        self.done = 0
        self.waiting: dict[tuple[str, str], Any] = {}
        self.group: asyncio.TaskGroup | None = None

    async def submit(self, request: TurnRequest) -> ScriptedTicket:
        if self.before_store:
            await self.before_store()
        if self.refusal:
            raise self.refusal
        key = (request.session, request.message_id)
        receipt = await self.store.receive(request)
        if key not in self.waiting:
            self.requests.append(request)
            self.waiting[key] = asyncio.get_running_loop().create_future()
            self.group.create_task(self._run(request, receipt))
        return ScriptedTicket(receipt, self.waiting[key])

    async def _run(self, request: TurnRequest, receipt: Receipt) -> None:
        session = request.session
        await self.store.begin(receipt.turn_id)
        started = TurnStarted(session, request.message_id, request.text, request.images)
        self.hub.emit(started)
        self.hub.emit(TextChunk(session, self.words[0]))
        await self.go.wait()
        for word in self.words[1:]:
            self.hub.emit(TextChunk(session, word))
        if self.before_end:
            await self.before_end(request)
        text = "".join(self.words)
        stop = None if self.failure else StopReason.END_TURN
        usage = Usage(3, 4)
        turn = Turn(
            session,
            request.message_id,
            text,
            stop,
            usage,
            failure=self.failure,
            context_tokens=7,
        )
        row = NewRow(RowRole.ASSISTANT, (Text(text),), usage=usage)
        await self.store.finish(receipt.turn_id, turn, () if self.failure else (row,))
        self.done += 1
        self.waiting[session, request.message_id].set_result(turn)
        self.hub.emit(TurnEnded(session, turn))

    def cancel(self, session: str) -> bool:
        self.cancelled.append(session)
        return True

    def cancel_message(self, session: str, message_id: str) -> bool:
        if (session, message_id) not in self.waiting:
            return False
        self.cancelled_messages.append(message_id)
        return self.cancel(session)

    def is_waiting(self, session: str) -> bool:
        return False

    def is_busy(self, session: str) -> bool:
        return False

    def queued(self, session: str) -> int:
        return 0

    async def compact(self, session: str, wish: str = "") -> CompactionReport:
        self.wishes.append(f"compact {wish}".rstrip())
        return CompactionReport(True, True, "manual", 100, 40)

    async def flush(self, session: str) -> CompactionReport:
        self.wishes.append("flush")
        return CompactionReport(True, False, "flushed", 100, 100)

    async def explain(self, session: str) -> dict[str, Any]:
        return {"flush_at": 76000}

    async def start_over(self, session: str) -> CompactionReport:
        self.wishes.append("new")
        return CompactionReport(True, True, "new", 100, 0)


@dataclass
class ScriptedTicket:
    receipt: Receipt
    ended: asyncio.Future[Turn]

    async def wait(self) -> Turn:
        return await asyncio.shield(self.ended)


ANSWERS = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
TOLD = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}


def check_frame(frame: dict[str, Any], asked: dict[Any, str]) -> None:
    """Hold a frame of the server against the protocol's own types; `asked` are methods by call
    id.
    """
    if "error" in frame:
        schema.Error.model_validate(frame["error"])
    elif "method" in frame:
        if model := TOLD.get(frame["method"]):
            model.model_validate(frame["params"], by_name=False)
    elif model := ANSWERS.get(asked.get(frame["id"], "")):
        model.model_validate(frame["result"], by_name=False)


@dataclass
class RawClient:
    """A client that speaks the protocol by hand and checks every frame it gets. `seen` are the
    frames that answered no call.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seen: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[Any, dict[str, Any]] = field(default_factory=dict)
    last_id: int = 0
    asked: dict[Any, str] = field(default_factory=dict)

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> dict[str, Any] | None:
        """The next frame; None at the end."""
        async with asyncio.timeout(10):
            line = await self.reader.readline()
        if not line:
            return None
        frame = json.loads(line)
        check_frame(frame, self.asked)
        return frame

    async def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self.last_id += 1
        self.asked[self.last_id] = method
        frame = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params or {}}
        await self.raw(json.dumps(frame).encode() + b"\n")
        return self.last_id

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        await self.raw(json.dumps(frame).encode() + b"\n")

    async def answer(self, call_id: int) -> dict[str, Any]:
        """The answer to a call; what comes before it is kept in `seen`."""
        while call_id not in self.answers:
            frame = await self.read()
            assert frame is not None, "the server closed"
            if "method" in frame or frame["id"] is None:
                self.seen.append(frame)
            else:
                self.answers[frame["id"]] = frame
        return self.answers.pop(call_id)

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result of a call that must succeed."""
        frame = await self.answer(await self.send(method, params))
        assert "result" in frame, frame
        return frame["result"]

    async def fail(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The error of a call that must fail."""
        frame = await self.answer(await self.send(method, params))
        assert "error" in frame, frame
        return frame["error"]

    async def until(self, method: str) -> dict[str, Any]:
        """The next notification or question called `method`, from what has been seen or will
        come.
        """
        while True:
            for place, frame in enumerate(self.seen):
                if frame.get("method") == method:
                    return self.seen.pop(place)
            frame = await self.read()
            assert frame is not None, "the server closed"
            if "method" in frame:
                self.seen.append(frame)
            else:
                self.answers[frame["id"]] = frame

    async def reply(self, question: dict[str, Any], option: str) -> None:
        result = {"outcome": {"outcome": "selected", "optionId": option}}
        frame = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        await self.raw(json.dumps(frame).encode() + b"\n")

    async def hello(self, name: str = "test", **meta: Any) -> RawClient:
        params = {
            "protocolVersion": 1,
            "clientInfo": {"name": name, "version": "1"},
            "clientCapabilities": {"_meta": {"agentd/notify": True}},
        }
        await self.call("initialize", {**params, "_meta": meta})
        return self

    async def new(self, key: str | None = None) -> str:
        meta = {"agentd/key": key} if key else {}
        result = await self.call("session/new", {"cwd": "/w", "mcpServers": [], "_meta": meta})
        return result["sessionId"]

    async def resume(self, key: str) -> None:
        await self.call("session/resume", {"sessionId": key, "cwd": "/w", "mcpServers": []})

    async def prompt(self, key: str, text: str, message_id: str | None = None) -> int:
        meta = {"agentd/messageId": message_id} if message_id else {}
        blocks = [{"type": "text", "text": text}]
        return await self.send(
            "session/prompt", {"sessionId": key, "prompt": blocks, "_meta": meta}
        )

    def texts(self, kind: str = "agent_message_chunk") -> str:
        """The words of all chunks seen so far."""
        updates = [f["params"]["update"] for f in self.seen if f["method"] == "session/update"]
        return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == kind)

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@dataclass
class House:
    """A running server and what it stands on."""

    path: Path
    clock: FakeClock
    store: MemorySessions
    hub: Hub
    turns: ScriptedTurns
    clients: Clients
    permissions: Permissions
    server: Server
    stack: AsyncExitStack

    async def client(self, path: str | None = None) -> RawClient:
        reader, writer = await asyncio.open_unix_connection(path or self.path, limit=4 << 20)
        client = RawClient(reader, writer)
        self.stack.push_async_callback(_hang_up, writer)
        return client

    async def settle(self, connections: int) -> None:
        """Return when so many clients are connected."""
        async with asyncio.timeout(10):
            while self.server.connections != connections:
                await asyncio.sleep(0.001)


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.fixture
def short_path():
    """A folder whose name leaves room for a socket's."""
    folder = Path(tempfile.mkdtemp(prefix="agentd-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def open_house(short_path):
    """A function that opens a house: settings, own methods and place may be chosen."""

    @asynccontextmanager
    async def open_(settings=None, methods=None, path=None, hooks=None, uses=None, **options):
        settings = settings or ServerSettings()
        clock = FakeClock()
        most = settings.max_sessions_per_client
        hub, clients, store = Hub(1000, most), Clients(), MemorySessions(clock)
        turns = ScriptedTurns(store, hub)
        access = partial(
            build_access,
            settings=settings,
            turns=turns,
            store=store,
            hub=hub,
            clients=clients,
            methods=methods or {},
            clock=clock,
            uses=ClientUses(
                SessionHooks(**{"erase": store.delete, **(hooks or {})}),
                turns,
                **{"offer": OFFER, **(uses or {})},
            ),
        )
        server = Server(settings, access, hub=hub, clients=clients, clock=clock, **options)
        place = path or short_path / "agentd.sock"
        permissions = Permissions(hub, settings, clock, Path("/ws"))
        async with asyncio.TaskGroup() as group:
            turns.group = group
            async with server.listen(place), AsyncExitStack() as stack:
                yield House(place, clock, store, hub, turns, clients, permissions, server, stack)

    return open_


@pytest.fixture
async def house(open_house):
    """A house with default settings."""
    async with open_house() as opened:
        yield opened
