"""The daemon as a real process on a real socket, and what must hold of it whatever happened."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from agentd.core.paths import shipped_path
from agentd.testing import check_api_messages
from agentd.workspace.template import create
from tests.e2e.forked import Forked, parent
from tests.e2e.model_server import CANARY, WHISPER
from tests.waiting import until

PATIENCE = 30.0  # seconds that anything may take on a busy machine
_STEP = 0.02
_LIVE_CACHES = 4  # breakpoints that the service takes in one request
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,64}")  # ids and names of calls and tools
_names = itertools.count(1)

Json = dict[str, Any]


class Gone(Exception):
    """The daemon closed the connection."""


class Refused(Exception):
    """The daemon answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['message']} {error.get('data')}")
        self.code = error.get("data", {}).get("code", "")


class ModelServer:
    """The fake model's process; its log tells what daemons asked."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "requests.jsonl"
        self._log.touch()
        argv = [sys.executable, str(Path(__file__).with_name("model_server.py"))]
        self._process = subprocess.Popen(
            [*argv, "--log", str(self._log)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.port = int(self._process.stdout.readline())

    def requests(self, who: str) -> list[Json]:
        """The bodies of all requests of one daemon so far."""
        with self._log.open(encoding="utf-8") as lines:
            found = (json.loads(line) for line in lines if f'"who": "{who}"' in line[:80])
            return [entry["body"] for entry in found]

    async def open_gate(self, who: str, name: str) -> None:
        """Let `gate NAME` be answered, now and from now on."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET /{who}/open/{name} HTTP/1.1\r\n\r\n".encode())
        await reader.readline()
        writer.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


class Client:
    """One client of the daemon, speaking lines of JSON-RPC. Keeps every line it got."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines: list[str] = []
        self.accepted: set[str] = set()
        self.alerts: list[str] = []
        self.asked: list[Json] = []  # what the user was asked
        self.forms: list[Json] = []  # what the user was to fill in
        self.fills: Json = {"action": "cancel"}  # what is said to each
        self.chooses = ""  # the kind of answer that is given to it
        self.answers = True  # whether it is answered at all
        self.limit: int | None = None  # how many questions get that answer; to others it is no
        self.number = 0  # of the newest request
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def connect(cls, socket: Path) -> Self:
        """A client that has said hello. Raises OSError, Gone."""
        client = cls(*await asyncio.open_unix_connection(str(socket), limit=1 << 24))
        try:
            asks = {"clientCapabilities": {"_meta": {"agentd/notify": True}}}
            await client.call("initialize", {"protocolVersion": 1, **asks})
        except BaseException:
            await client.close()
            raise
        return client

    async def call(self, method: str, params: Json | None = None) -> Any:
        """The result of a call. Raises Refused, Gone."""
        return await self.start(method, params)

    def start(self, method: str, params: Json | None = None) -> asyncio.Future[Any]:
        """The same, to be awaited later."""
        self.number = number = self.number + 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[number] = answer
        if self._reading.done():
            answer.set_exception(Gone())
            return answer
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self._writer.write(json.dumps(frame).encode() + b"\n")
        return answer

    def notify(self, method: str, params: Json) -> None:
        """Tell the daemon something."""
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        self._writer.write(json.dumps(frame).encode() + b"\n")

    def prompt(self, text: str, message_id: str, session: str = "main") -> asyncio.Future[Any]:
        """A message on its way."""
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        return self.start("session/prompt", {**params, "_meta": {"agentd/messageId": message_id}})

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    async def say(self, text: str, message_id: str, session: str = "main") -> str:
        """The text of the answer to a message."""
        answer = await self.prompt(text, message_id, session)
        return str(answer["_meta"]["agentd/text"])

    async def wait_accepted(self, *message_ids: str) -> None:
        """Return when the daemon has said that it has them."""
        await until(lambda: self.accepted.issuperset(message_ids), f"{message_ids} accepted")

    async def export(self, session: str = "main") -> list[Json]:
        """The whole transcript."""
        found = await self.call("_agentd/sessions/export", {"key": session})
        assert found["next"] is None
        return list(found["lines"])

    async def close(self) -> None:
        self._writer.close()
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(line.decode())
        except OSError:
            pass  # killed: the futures below say so
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Gone())

    def _take(self, line: str) -> None:
        self.lines.append(line)
        frame = json.loads(line)
        match frame:
            case {"method": "_agentd/accepted", "params": params}:
                self.accepted.add(params["messageId"])
            case {"method": "_agentd/alert", "params": params}:
                self.alerts.append(params["text"])
            case {"method": "session/request_permission", "id": number, "params": params}:
                self.asked.append(params)
                if not self.answers:
                    return
                is_over = self.limit is not None and len(self.asked) > self.limit
                wanted = "reject_once" if is_over else self.chooses
                chosen = [o for o in params["options"] if o["kind"] == wanted]
                picked = (
                    {"outcome": "selected", "optionId": chosen[0]["optionId"]} if chosen else {}
                )
                outcome = {"outcome": picked or {"outcome": "cancelled"}}
                reply = {"jsonrpc": "2.0", "id": number, "result": outcome}
                self._writer.write(json.dumps(reply).encode() + b"\n")
            case {"method": "elicitation/create", "id": number, "params": params}:
                self.forms.append(params)
                reply = {"jsonrpc": "2.0", "id": number, "result": self.fills}
                self._writer.write(json.dumps(reply).encode() + b"\n")
            case {"id": int(number)} if "method" not in frame:
                answer = self._waiting.pop(number)
                if not answer.done() and "error" in frame:
                    answer.set_exception(Refused(frame["error"]))
                elif not answer.done():
                    answer.set_result(frame["result"])


@dataclass
class Daemon:
    """A running daemon."""

    process: asyncio.subprocess.Process | Forked
    home: Home

    async def connect(self) -> Client:
        """A client; waits until the daemon listens."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                client = await Client.connect(self.home.socket)
            except (OSError, Gone):
                assert self.process.returncode is None, self.home.complaints()
                assert time.monotonic() < end, "the daemon does not listen"
                await asyncio.sleep(_STEP)
            else:
                self.home.clients.append(client)
                return client

    async def died(self) -> int:
        """The exit code, negative for a signal."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def killed(self) -> None:
        """Return when the process has been killed, by itself or by us."""
        assert await self.died() == -signal.SIGKILL

    async def kill(self) -> None:
        """Give it no chance."""
        if self.process.returncode is None:
            self.process.kill()
        await self.died()

    async def stop(self) -> float:
        """Ask it to end, which it must do well; returns how many seconds that took."""
        began = time.monotonic()
        self.process.terminate()
        code = await self.died()
        assert code == 0, self.home.complaints()
        return time.monotonic() - began


@dataclass
class Home:
    """Everything that one daemon owns, in a short place."""

    root: Path
    model: ModelServer
    name: str = field(default_factory=lambda: f"h{os.getpid()}x{next(_names)}")
    settings: str = ""
    wire: str = "anthropic"  # or "openai": in which words the model is asked
    clients: list[Client] = field(default_factory=list)
    daemons: list[Daemon] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    preloaded: Path | None = None  # a library that daemons load before all others

    @property
    def socket(self) -> Path:
        return self.root / "agentd.sock"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def configure(self, text: str = "") -> None:
        """Write the configuration; `text` is what comes after the usual."""
        url = f"http://127.0.0.1:{self.model.port}/{self.name}"
        service = f'kind = "{self.wire}"\nbase_url = "{url}"\n'
        if self.wire == "openai":
            service = f'kind = "openai"\nmodel = "fake"\nbase_url = "{url}/v1"\n'
        (self.root / "config.toml").write_text(
            f'[agent]\ntimezone = "UTC"\n[provider]\n{service}{text}', encoding="utf-8"
        )

    def furnish(self) -> None:
        """Make the workspace now, so that no failpoint is met while a daemon makes it."""
        create(self.workspace, shipped_path("workspace_template"))

    def environ(self, failpoint: str = "") -> dict[str, str]:
        """What a daemon is started with."""
        given = {"AGENTD_HOME": str(self.root), f"{self.wire.upper()}_API_KEY": "test-key"}
        # The same answers where better embedders are installed.
        given["AGENTD__MEMORY_SEARCH__PROVIDER"] = "static"
        if failpoint:
            given["AGENTD_FAILPOINT"] = failpoint
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.root),
            **given,
            **self.variables,
        }

    async def start(self, failpoint: str = "") -> Daemon:
        """A daemon on this home."""
        return self.started(self._forked(failpoint))

    async def start_alone(self) -> Daemon:
        """A daemon that is forked from nothing that has loaded more than it."""
        with (self.root / "stderr").open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agentd", "run"),
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        return self.started(process)

    def _forked(self, failpoint: str) -> Forked:
        with Path(os.devnull).open("r+b") as null, (self.root / "stderr").open("ab") as stderr:
            streams = null.fileno(), null.fileno(), stderr.fileno()
            return parent(self.preloaded).start(
                ["run"], streams, environ=self.environ(failpoint), folder=self.root
            )

    def started(self, process: asyncio.subprocess.Process | Forked) -> Daemon:
        daemon = Daemon(process, self)
        self.daemons.append(daemon)
        return daemon

    def complaints(self) -> str:
        """What the daemons wrote to standard error and, last, to their log."""
        log = self.root / "state" / "logs" / "agentd.log"
        told = log.read_text("utf-8")[-4000:] if log.exists() else ""
        return (self.root / "stderr").read_text("utf-8") + told

    def notes(self) -> str:
        """All daily notes, one after the other."""
        files = sorted((self.workspace / "memory").glob("2*.md"))
        return "".join(file.read_text("utf-8") for file in files)

    def scribble(self, line: str) -> None:
        """Add a line to today's note as another program would."""
        folder = self.workspace / "memory"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{time.strftime('%Y-%m-%d', time.gmtime())}.md").open("a") as note:
            note.write(line + "\n")

    def requests(self) -> list[Json]:
        """What the model was asked."""
        return self.model.requests(self.name)

    def check(self) -> None:
        """What must hold at every time: well-formed requests, silence, no litter."""
        for body in self.requests():
            check_request(body)
        silent = (f"{CANARY}-{self.name}", WHISPER)
        for client in self.clients:
            leaks = [line for line in client.lines if any(word in line for word in silent)]
            assert not leaks, f"a silent turn was heard: {leaks[0]}"
        log = self.complaints()
        assert not any(word in log for word in silent), "a silent turn is in the log"
        assert not list(self.workspace.rglob(".agentd-*")), "temporary files were left"

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        for daemon in self.daemons:
            await daemon.kill()


@asynccontextmanager
async def a_home(
    model: ModelServer, settings: str = "", wire: str = "anthropic"
) -> AsyncIterator[Home]:
    """A home that is gone after the block, its daemons with it; checked if all went well."""
    root = Path(tempfile.mkdtemp(prefix="ae-"))
    home = Home(root, model, wire=wire)
    home.configure(settings)
    try:
        yield home
        home.check()
    finally:
        await home.close()
        shutil.rmtree(root)


def check_request(body: Json) -> None:
    """AssertionError if the service would refuse the request."""
    messages = body["messages"]
    check_api_messages(messages)
    roles = [message["role"] for message in messages]
    assert all(a != b for a, b in itertools.pairwise(roles)), f"neighbours of one role: {roles}"
    assert roles[-1] == "user", "the model is asked to continue its own words"
    blocks = [*_blocks(body.get("system", [])), *body.get("tools", [])]
    for message in messages:
        parts = list(_blocks(message["content"]))
        assert parts, f"an empty message of the {message['role']}"
        blocks += parts
    assert all(b["text"].strip() for b in blocks if b.get("type") == "text"), "a blank text"
    labels = [
        block[key] for block in blocks for key in ("id", "name", "tool_use_id") if key in block
    ]
    assert all(_LABEL.fullmatch(label) for label in labels), f"an id or name in {labels}"
    marks = sum("cache_control" in block for block in blocks)
    assert marks <= _LIVE_CACHES, f"{marks} cache breakpoints"
    assert body["stream"] is True
    assert body["max_tokens"] > 0


def texts(rows: list[Json], role: str) -> list[str]:
    """The words of all rows of a role, results of tools left out."""
    found = (
        "".join(b.get("text", "") for b in row["content"]) for row in rows if row["role"] == role
    )
    return [text for text in found if text]


def _blocks(content: Any) -> Iterator[Json]:
    yield from [{"type": "text", "text": content}] if isinstance(content, str) else content
