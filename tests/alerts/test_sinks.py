"""Each way of reaching the user."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from agentd.automation.alerts.sinks import CommandSink, JournalSink, MainSessionSink
from agentd.automation.alerts.webhook import WebhookSink
from agentd.core.alert import Alert
from agentd.core.errors import AgentdError, ConfigError
from agentd.core.event import NoticeGiven
from agentd.core.turn import MAIN
from agentd.testing import FakeClock, MemorySessions, RecordingSink
from tests.waiting import until

ALERT = Alert(7, datetime(2026, 5, 4, 10, 0, tzinfo=UTC), "Disk “full” $(rm)\n", "heartbeat", "me")
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


async def test_the_journal_has_the_text() -> None:
    with capture_logs() as logs:
        await JournalSink().send(ALERT)
    assert logs == [
        {
            "event": "alert",
            "log_level": "warning",
            "id": 7,
            "origin": "heartbeat",
            "text": ALERT.text,
        }
    ]


async def test_the_main_conversation_gets_one_notice_however_often_it_is_tried() -> None:
    sessions, events = MemorySessions(FakeClock()), RecordingSink()
    for _ in range(2):
        await MainSessionSink(sessions, events).send(ALERT)
    rows = [row for row in await sessions.rows(MAIN) if row.tag.startswith("alert")]
    assert [(row.text, row.tag) for row in rows] == [(ALERT.text, "alert:7")]
    assert events.events == [NoticeGiven(MAIN, ALERT.text, f"alert:{ALERT.id}")]


def python(code: str, **environ: str) -> CommandSink:
    return CommandSink((sys.executable, "-c", code), MINUTE, dict(os.environ) | environ)


async def test_a_command_gets_the_text_on_stdin_and_nothing_of_the_daemons(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code = (
        "import json, os, sys; json.dump([sys.stdin.buffer.read().decode(), dict(os.environ), "
        f"os.getpgid(0) == os.getpid()], open({str(out)!r}, 'w'))"
    )
    secrets = {
        "ANTHROPIC_API_KEY": "s",
        "NOTIFY_SOCKET": "s",
        "WATCHDOG_USEC": "1",
        "CREDENTIALS_DIRECTORY": "/s",
        "AGENTD_HOME": "/s",
        "LC_TIME": "C",
    }
    await python(code, **secrets).send(ALERT)
    text, environ, leads_its_group = json.loads(out.read_text())
    assert text == ALERT.text
    assert leads_its_group
    assert set(secrets) & set(environ) == {"LC_TIME"}
    assert (environ["AGENTD_ALERT_ID"], environ["AGENTD_ALERT_TO"]) == ("7", "me")


async def test_a_command_that_does_not_read_is_fine_when_it_ends_well(tmp_path: Path) -> None:
    big = Alert(1, ALERT.at, "x" * 1_000_000, "test")
    ran = tmp_path / "ran"
    await CommandSink(("touch", str(ran)), MINUTE, os.environ).send(big)
    assert ran.exists()


def test_a_command_that_ends_before_anything_is_written_to_it_has_told() -> None:
    async def failures() -> list[AgentdError]:
        found = []
        for _ in range(40):
            try:
                await CommandSink(("true",), MINUTE, os.environ).send(ALERT)
            except AgentdError as error:
                found.append(error)
        return found

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the daemon's loop
        assert runner.run(failures()) == []


async def test_a_command_that_fails_is_told_with_its_status() -> None:
    with pytest.raises(AgentdError, match="ended with 3"):
        await python("raise SystemExit(3)").send(ALERT)


async def test_a_command_that_is_not_there_is_told() -> None:
    sink = CommandSink(("/no/such/program",), SECOND, os.environ)
    with pytest.raises(AgentdError, match="did not start"):
        await sink.send(ALERT)


async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $$ $! > {pids}; wait"
    sink = CommandSink(("sh", "-c", script), timedelta(milliseconds=90), os.environ)
    with pytest.raises(AgentdError, match="took longer"):
        await sink.send(ALERT)
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not is_running(pid), f"{pid} has ended")


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Web:
    """An HTTP server that answers with the next of its statuses and keeps what it was sent."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[str, Any]] = []
        self.port = 0
        self.served = asyncio.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length:")[2].split()[0])
        body = await reader.readexactly(length)
        self.requests.append((head.split()[1], json.loads(body)))
        status = self.statuses.pop(0)
        location = f"location: http://127.0.0.1:{self.port}/elsewhere\r\n"
        writer.write(
            f"HTTP/1.1 {status} x\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        self.served.release()


@asynccontextmanager
async def web(*statuses: int) -> AsyncIterator[tuple[Web, WebhookSink]]:
    site = Web(*statuses)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server, WebhookSink(f"http://127.0.0.1:{site.port}/secret", MINUTE) as sink:
        yield site, sink
        async with asyncio.timeout(5):
            for _ in site.requests:
                await site.served.acquire()


async def test_a_webhook_gets_the_alert_as_json() -> None:
    async with web(204) as (site, sink):
        await sink.send(ALERT)
    assert site.requests == [
        (
            "/secret",
            {
                "id": 7,
                "at": "2026-05-04T10:00:00+00:00",
                "text": ALERT.text,
                "origin": "heartbeat",
                "to": "me",
            },
        )
    ]


async def test_a_webhook_out_of_order_has_failed_and_works_the_next_time() -> None:
    async with web(500, 200) as (site, sink):
        with pytest.raises(AgentdError, match="answered 500") as caught:
            await sink.send(ALERT)
        assert "secret" not in caught.value.message
        await sink.send(ALERT)
    assert len(site.requests) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with web(status) as (site, sink):
        with pytest.raises(AgentdError, match=f"answered {status}"):
            await sink.send(ALERT)
    assert [path for path, _ in site.requests] == ["/secret"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with web(200) as (site, sink):
        await sink.send(ALERT)
    assert len(site.requests) == 1


async def test_a_certificate_of_nowhere_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(ConfigError, match="nowhere"):
        async with WebhookSink("https://example.org/secret", MINUTE):
            pass


async def test_a_webhook_that_nobody_answers_has_failed_without_telling_its_address() -> None:
    async with web() as (site, _):
        port = site.port
    async with WebhookSink(f"http://127.0.0.1:{port}/secret", MINUTE) as sink:
        with pytest.raises(AgentdError, match="cannot be reached") as caught:
            await sink.send(ALERT)
    assert "secret" not in repr(caught.value)
    assert caught.value.__cause__ is None


async def test_a_webhook_that_hangs_has_failed() -> None:
    left = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    short = timedelta(milliseconds=500)
    async with server, WebhookSink(f"http://127.0.0.1:{port}/", short) as sink:
        with pytest.raises(AgentdError, match="cannot be reached"):
            await sink.send(ALERT)
        async with asyncio.timeout(5):
            await left.wait()
