"""A session that outlives the daemon."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agentd.core.errors import AgentdError, DaemonUnreachable, InvalidRequest
from agentd.interfaces.client.attachments import read_image
from agentd.interfaces.client.conversation import Conversation, join_session
from agentd.interfaces.client.remote_error import RemoteError
from tests.scripted_daemon import Hangup, Refusal, ScriptedDaemon, Wire


class Log:
    """A companion that keeps what it hears."""

    def __init__(self):
        self.heard = []

    def notified(self, method, params):
        self.heard.append(method)

    async def requested(self, method, params):
        return None

    def lost(self):
        self.heard.append("lost")

    def regained(self):
        self.heard.append("regained")

    def made_smaller(self, name, size, made):
        self.heard.append((name, size, made))


def end_turn(params, wire):
    return {"stopReason": "end_turn"}


async def test_joining_introduces_the_client_and_resumes_the_session(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", end_turn)
        async with join_session((daemon.path,), "main", Log()) as conversation:
            result = await conversation.say("hi", "m1")
    assert result == {"stopReason": "end_turn"}
    assert [method for method, _ in daemon.calls] == [
        "initialize",
        "session/resume",
        "session/prompt",
    ]
    assert daemon.params_of("session/resume")[0]["sessionId"] == "main"
    assert daemon.params_of("session/prompt") == [
        {
            "sessionId": "main",
            "prompt": [{"type": "text", "text": "hi"}],
            "_meta": {"agentd/messageId": "m1"},
        }
    ]


async def test_a_client_without_a_user_says_that_it_denies(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        async with join_session((daemon.path,), "main", Log(), deny=True):
            pass
        async with join_session((daemon.path,), "main", Log()):
            pass
    first, second = daemon.params_of("initialize")
    assert first["_meta"] == {"agentd/permissions": "deny"}
    assert "_meta" not in second


async def test_a_session_that_does_not_exist_is_made_under_its_key(tmp_path: Path) -> None:
    def absent(params, wire):
        raise Refusal(-32002, "no such session", code="not_found")

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/resume", absent)
        daemon.on("session/new", lambda params, wire: {"sessionId": "group:x"})
        async with join_session((daemon.path,), "group:x", Log()) as conversation:
            assert conversation.session == "group:x"
    assert daemon.params_of("session/new")[0]["_meta"] == {"agentd/key": "group:x"}


async def test_nobody_there_at_the_start_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachable):
        async with join_session((tmp_path / "absent",), "main", Log()):
            pytest.fail("there is nothing to talk to")


async def test_a_message_cut_by_a_lost_connection_is_sent_again_under_its_id(
    tmp_path: Path,
) -> None:
    def cut_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            raise Hangup
        return {"stopReason": "end_turn"}

    log = Log()
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", cut_once)
        async with join_session((daemon.path,), "main", log) as conversation:
            assert await conversation.say("hi", "m1") == {"stopReason": "end_turn"}
    first, second = daemon.params_of("session/prompt")
    assert first == second
    assert log.heard == ["lost", "regained"]


async def test_a_daemon_that_is_stopping_gets_the_message_after_its_restart(
    tmp_path: Path,
) -> None:
    def stopping_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            wire.send({"id": 3, "error": {"code": -32000, "message": "", "data": _STOPPING}})
            raise Hangup
        return {"stopReason": "end_turn"}

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", stopping_once)
        async with join_session((daemon.path,), "main", Log()) as conversation:
            assert await conversation.say("hi", "m1") == {"stopReason": "end_turn"}


_STOPPING = {"code": "shutting_down"}


async def test_what_a_running_turn_has_shown_comes_after_the_news_that_the_daemon_is_back(
    tmp_path: Path,
) -> None:
    def cut_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            raise Hangup
        return {"stopReason": "end_turn"}

    def resume(params, wire):
        wire.words("main", "so far")
        return {}

    log = Log()
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", cut_once)
        daemon.on("session/resume", resume)
        async with join_session((daemon.path,), "main", log) as conversation:
            await conversation.say("hi", "m1")
    assert log.heard == ["session/update", "lost", "regained", "session/update"]


async def test_a_daemon_that_stays_away_is_given_up(tmp_path: Path) -> None:
    daemon = ScriptedDaemon(tmp_path / "s")
    daemon.on("session/prompt", lambda params, wire: end_turn(params, wire))
    daemon.__enter__()
    log = Log()
    async with join_session((daemon.path,), "main", log, patience=0.01) as conversation:
        daemon.__exit__()
        while "lost" not in log.heard:
            await asyncio.sleep(0)
        with pytest.raises(DaemonUnreachable, match="the message was NOT sent") as caught:
            await conversation.say("hi", "m1")
    assert "send the message again" in caught.value.cure


async def test_a_failed_turn_is_an_error_with_its_code(tmp_path: Path) -> None:
    def fail(params, wire):
        raise Refusal(-32010, "the model is overloaded", code="provider_overloaded", cure="wait")

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", fail)
        async with join_session((daemon.path,), "main", Log()) as conversation:
            with pytest.raises(RemoteError) as caught:
                await conversation.say("hi", "m1")
            assert caught.value.reason == "provider_overloaded"
            daemon.on("session/prompt", end_turn)
            assert await conversation.say("again", "m2") == {"stopReason": "end_turn"}


async def said_and_cancelled(conversation: Conversation, log: Log) -> Any:
    """The result of a message that is cancelled as soon as the daemon has it."""
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        saying = group.create_task(conversation.say("hi", "m1"))
        while "_agentd/accepted" not in log.heard:
            await asyncio.sleep(0)
        cancelling = group.create_task(conversation.cancel())
        saying.add_done_callback(lambda _: cancelling.cancel())
    return saying.result()


def accept(wire: Wire) -> None:
    wire.notify("_agentd/accepted", {"sessionId": "main", "messageId": "m1", "seq": 1})


async def test_cancelling_names_the_session(tmp_path: Path) -> None:
    def cancelled(params, wire):
        accept(wire)
        assert json.loads(wire.lines.readline())["method"] == "session/cancel"
        return {"stopReason": "cancelled"}

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", cancelled)
        async with join_session((daemon.path,), "main", log := Log()) as conversation:
            assert await said_and_cancelled(conversation, log) == {"stopReason": "cancelled"}


@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_cancellation_that_went_to_a_dying_daemon_is_said_again_to_the_next(
    tmp_path: Path, deaths: int
) -> None:
    heard = []

    def heard_by_one_that_dies(params, wire):
        accept(wire)
        heard.append(json.loads(wire.lines.readline())["method"])
        if len(heard) <= deaths:
            raise Hangup
        raise Refusal(-32800, "the call was taken back", code="withdrawn")

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("session/prompt", heard_by_one_that_dies)
        async with join_session((daemon.path,), "main", log := Log()) as conversation:
            assert await said_and_cancelled(conversation, log) == {"stopReason": "cancelled"}
    assert heard == ["session/cancel", *["$/cancel_request"] * deaths]


async def test_an_image_that_is_too_large_goes_along_smaller_and_that_is_told(tmp_path) -> None:
    out = io.BytesIO()
    Image.frombytes("RGB", (900, 600), random.Random(1).randbytes(900 * 600 * 3)).save(out, "PNG")
    file = tmp_path / "photo.png"
    file.write_bytes(out.getvalue())
    limits = {"_meta": {"agentd/maxImageBytes": 20_000}}
    log = Log()
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("initialize", lambda params, wire: {"protocolVersion": 1, **limits})
        daemon.on("session/prompt", end_turn)
        async with join_session((daemon.path,), "main", log) as conversation:
            await conversation.say("what is it?", "m1", [read_image(file)])
        (params,) = daemon.params_of("session/prompt")
    sent = len(b64decode(params["prompt"][0]["data"]))
    assert sent <= 20_000
    assert ("photo.png", len(out.getvalue()), sent) in log.heard


def test_a_named_pipe_that_nobody_writes_to_is_no_image(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="no image"):
        read_image(tmp_path / "pipe")
    with pytest.raises(AgentdError, match="cannot be read"):
        read_image(tmp_path)


def test_a_pipe_that_is_written_is_read_to_its_end(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.new("RGB", (40, 40)).save(out, "PNG")
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(out.getvalue())
    assert read_image(Path(f"/dev/fd/{reading}")).data == out.getvalue()
    os.close(reading)
