"""The client's one connection."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from agentd.core.errors import Busy, DaemonUnreachable, InvalidRequest
from agentd.interfaces.client.connection import DaemonConnection, connect, dial
from agentd.interfaces.client.remote_error import ConnectionLost, RemoteError, exit_status
from tests.scripted_daemon import Hangup, Refusal, ScriptedDaemon


class Ears:
    """A watcher that keeps what it hears and answers every question alike."""

    def __init__(self, answer=None):
        self.heard = []
        self.answer = answer

    def notified(self, method, params):
        self.heard.append((method, params))

    async def requested(self, method, params):
        self.heard.append((method, params))
        return self.answer


def hang_up(params, wire):
    raise Hangup


def sleep_until_the_client_leaves(params, wire):
    wire.lines.read()
    raise Hangup


async def test_a_call_gets_its_result(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("echo", lambda params, wire: {"got": params})
        async with connect((daemon.path,)) as connection:
            assert await connection.call("echo", {"a": "ä"}) == {"got": {"a": "ä"}}


async def test_calls_under_way_at_once_get_their_own_results(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("echo", lambda params, wire: params["n"])
        async with connect((daemon.path,)) as connection, asyncio.TaskGroup() as group:
            calls = [group.create_task(connection.call("echo", {"n": n})) for n in range(20)]
        assert [call.result() for call in calls] == list(range(20))


async def test_the_first_socket_that_answers_is_taken(tmp_path: Path) -> None:
    (tmp_path / "plain file").touch()
    with ScriptedDaemon(tmp_path / "s") as daemon:
        places = (tmp_path / "absent" / "s", tmp_path / "plain file", daemon.path)
        async with connect(places) as connection:
            assert await connection.call("initialize")


async def test_nobody_there_is_unreachable_and_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachable, match="absent") as caught:
        async with connect((tmp_path / "absent",)):
            pass
    assert exit_status(caught.value) == 69
    assert "agentd up" in caught.value.cure


async def test_a_path_longer_than_the_kernel_takes_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / "agentd.sock"
    with ScriptedDaemon(deep) as daemon:
        async with connect((daemon.path,)) as connection:
            assert await connection.call("initialize")


@pytest.mark.parametrize(
    ("data", "reason", "status"),
    [
        pytest.param({"code": "queue_full", "cure": "wait"}, "queue_full", 75, id="busy"),
        pytest.param({"code": "invalid"}, "invalid", 2, id="usage"),
        pytest.param({"code": "provider_auth"}, "provider_auth", 1, id="a word of the server"),
        pytest.param({}, "failed", 1, id="no data"),
    ],
)
async def test_an_error_keeps_code_and_cure_and_maps_to_an_exit_code(
    tmp_path: Path, data: dict[str, str], reason: str, status: int
) -> None:
    def refuse(params, wire):
        raise Refusal(-32000, "no", **data)

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", refuse)
        async with connect((daemon.path,)) as connection:
            with pytest.raises(RemoteError) as caught:
                await connection.call("x")
    assert (caught.value.message, caught.value.reason) == ("no", reason)
    assert caught.value.cure == data.get("cure", "")
    assert exit_status(caught.value) == status


async def test_a_daemon_that_goes_away_fails_the_open_call(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", hang_up)
        async with connect((daemon.path,)) as connection:
            with pytest.raises(ConnectionLost):
                await connection.call("x")
            with pytest.raises(ConnectionLost):
                await connection.call("x")


async def test_an_error_without_id_explains_why_the_daemon_hangs_up(tmp_path: Path) -> None:
    def complain(params, wire):
        wire.send({"id": None, "error": {"code": -32600, "message": "too long"}})
        raise Hangup

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", complain)
        async with connect((daemon.path,)) as connection:
            with pytest.raises(RemoteError, match="too long"):
                await connection.call("x")


async def test_a_slow_answer_is_not_waited_for_longer_than_asked(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", sleep_until_the_client_leaves)
        async with connect((daemon.path,)) as connection:
            with pytest.raises(Busy, match="x within"):
                await connection.call("x", within=0.01)


async def test_a_daemon_whose_process_is_stopped_is_not_waited_for(tmp_path: Path) -> None:
    listen = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])"
    code = f"{listen}; s.listen(); print(flush=True); time.sleep(60)"
    program = (sys.executable, "-c", code, str(tmp_path / "s"))
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        reader, writer = await dial((tmp_path / "s",))
        connection = DaemonConnection(reader, writer, Ears(), silence=0.01)
        with pytest.raises(Busy, match=f"process {process.pid} is stopped") as told:
            await connection.call("x", within=60)
        assert f"kill -CONT {process.pid}" in told.value.cure
        writer.close()
    finally:
        process.kill()
        await process.wait()


async def test_a_message_the_daemon_would_not_take_is_not_sent(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        async with connect((daemon.path,)) as connection:
            with pytest.raises(InvalidRequest, match="1048576"):
                await connection.call("x", {"text": "x" * 1024 * 1024})
            assert await connection.call("initialize")
    assert daemon.params_of("x") == []


async def test_bytes_that_are_no_text_are_refused_before_they_are_sent(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        async with connect((daemon.path,)) as connection:
            with pytest.raises(InvalidRequest, match="UTF-8"):
                await connection.call("x", {"text": "caf\udce9"})
            assert await connection.call("initialize")
    assert daemon.params_of("x") == []


async def test_notifications_come_before_the_answer_they_precede(tmp_path: Path) -> None:
    def tell(params, wire):
        wire.notify("news", {"n": 1})
        wire.notify("news", {"n": 2})
        return "done"

    ears = Ears()
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", tell)
        async with connect((daemon.path,), ears) as connection:
            assert await connection.call("x") == "done"
    assert ears.heard == [("news", {"n": 1}), ("news", {"n": 2})]


async def test_a_question_of_the_daemon_is_answered_during_a_call(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", lambda params, wire: wire.ask("may_i", {"what": "sing"}))
        async with connect((daemon.path,), Ears({"yes": True})) as connection:
            assert await connection.call("x") == {"yes": True}


@pytest.mark.parametrize("answer", ["caf\udce9", float("inf"), "x" * 1_100_000])
async def test_an_answer_that_cannot_be_sent_is_an_error_and_ends_nothing(
    tmp_path: Path, answer: object
) -> None:
    def ask(params, wire):
        wire.send({"id": "q1", "method": "may_i", "params": {}})
        return json.loads(wire.lines.readline())["error"]["message"]

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", ask)
        async with connect((daemon.path,), Ears({"text": answer})) as connection:
            assert await connection.call("x")
            with pytest.raises(InvalidRequest):
                await connection.call("x", {"text": answer})
            assert await connection.call("x")


async def test_noise_between_frames_harms_nobody(tmp_path: Path) -> None:
    def babble(params, wire):
        wire.connection.sendall(b'not json\n[1]\n{"id":99,"result":1}\n\xff\n')
        return "done"

    with ScriptedDaemon(tmp_path / "s") as daemon:
        daemon.on("x", babble)
        async with connect((daemon.path,)) as connection:
            assert await connection.call("x") == "done"


async def test_a_failure_of_the_body_comes_out_as_itself(tmp_path: Path) -> None:
    with ScriptedDaemon(tmp_path / "s") as daemon, pytest.raises(KeyError):
        async with connect((daemon.path,)):
            raise KeyError
