"""Every way to be refused: the exit code, the stable word, what a person reads; and that all are
listed.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import agentd.core.errors
from agentd.core.errors import AgentdError
from agentd.core.graph import Record
from agentd.interfaces.acp import frames
from agentd.interfaces.commands.exchange import EXCHANGE, PROGRAMS
from agentd.interfaces.commands.fact_changes import FACT_CHANGES
from agentd.interfaces.commands.facts import FACTS, GRAPH
from agentd.interfaces.commands.proposals import PROPOSALS
from agentd.zero.formats.writing import write
from tests.e2e.contract import Wire, World, misfits, plain
from tests.e2e.contract_exchange import EXCHANGE_ROWS
from tests.e2e.contract_facts import FACT_ROWS
from tests.e2e.contract_faults import ALONE, COMMANDS, ELSEWHERE, LINES, METHODS, TEXT
from tests.e2e.contract_graph import GRAPH_ROWS
from tests.e2e.contract_rows import ROWS
from tests.e2e.contract_shapes import COMMAND_ERROR, METHOD_ERROR

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "socket.md").read_text(encoding="utf-8")
# What only the model meets, and what is told in a more exact form.
INSIDE = frozenset({"tool_failed", "provider", "budget", "embedder"})


@pytest.fixture(scope="module")
def scene(world: World) -> World:
    """What the failures are about."""
    root = world.shell.root
    (root / "wrong.toml").write_text("[heartbeat]\ninterval = 'soon'\ncolour = 'red'\n")
    (root / "hello.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    (root / "empty").mkdir()
    (world.shell.workspace / "latin.md").write_bytes("Grüße".encode("latin-1"))
    return world


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    COMMANDS,
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)
def test_a_failure_has_a_code_a_reason_and_a_cure(
    scene: World, argv: tuple[str, ...], code: int, word: str
) -> None:
    done = plain(scene.shell(*argv, "--json"))
    assert (done.code, done.err) == (code, ""), done
    assert not list(misfits(done.json, COMMAND_ERROR))
    error = done.json["error"]
    assert (error["code"], set(error)) == (word, {"code", "message", "cure"})


@pytest.mark.parametrize(
    ("argv", "code"),
    list({word: (argv, code) for argv, code, word in COMMANDS}.values()),
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)
def test_a_person_is_told_a_failure_in_words(
    scene: World, argv: tuple[str, ...], code: int
) -> None:
    done = plain(scene.shell(*argv))
    assert (done.code, done.out) == (code, ""), done
    assert re.search(r"^[Ee]rror: ", done.err, re.MULTILINE)
    assert len(done.err.splitlines()) <= 6


@pytest.mark.parametrize(
    ("method", "params", "number", "word"), METHODS, ids=lambda value: str(value)[:40]
)
def test_a_refused_call_says_why(
    scene: World, method: str, params: Any, number: int, word: str
) -> None:
    error = scene.wire.error(method, params)
    assert error["code"] == number, error
    assert error["message"]
    if word:
        assert not list(misfits(error, METHOD_ERROR)), error
        assert error["data"]["code"] == word


@pytest.mark.parametrize("method", sorted({row.method for row in ROWS if row.method} - {"stop"}))
def test_a_key_that_a_method_does_not_know_is_refused(scene: World, method: str) -> None:
    row = next(row for row in ROWS if row.method == method)
    error = scene.wire.error(f"_agentd/{method}", {**row.params, "colour": "red"})
    assert (error["code"], error["data"]["code"]) == (-32602, "invalid")
    assert "colour" in error["message"]
    assert error["data"]["cure"]


@pytest.mark.parametrize(("line", "number"), LINES, ids=lambda value: str(value)[:40])
def test_a_line_that_is_no_call_ends_no_connection(scene: World, line: bytes, number: int) -> None:
    scene.wire.write(line)
    error = scene.wire.answer(None)["error"]
    assert error["code"] == number
    assert error["message"]
    assert "version" in scene.wire.call("_agentd/status")


def test_a_full_queue_says_try_again(scene: World) -> None:
    """One message is being answered, one waits, and there is no room for a third."""
    with Wire(scene.shell.socket) as wire:
        wire.greet()
        calls = []
        for text in ("gate a", "gate b"):
            prompt = [{"type": "text", "text": text}]
            calls.append(wire.start("session/prompt", {"sessionId": "main", "prompt": prompt}))
            wire.heard(lambda frame: frame.get("method") == "_agentd/accepted")
        done = scene.shell("send", "say hi", "--json")
        assert (done.code, done.json["error"]["code"]) == (75, "queue_full")
        refused = wire.error("session/prompt", {"sessionId": "main", "prompt": TEXT})
        assert (refused["code"], refused["data"]["code"]) == (-32012, "queue_full")
        for call in calls:
            wire.write(
                b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "main"}}'
            )
            assert wire.answer(call)["result"]["stopReason"] == "cancelled"


def test_calls_can_be_taken_back_by_their_ids(scene: World) -> None:
    """One message is being answered, one waits; neither is answered any more."""
    with Wire(scene.shell.socket) as wire:
        wire.greet()
        calls = []
        for text in ("gate c", "gate d"):
            prompt = [{"type": "text", "text": text}]
            calls.append(wire.start("session/prompt", {"sessionId": "main", "prompt": prompt}))
            wire.heard(lambda frame: frame.get("method") == "_agentd/accepted")
        for call in reversed(calls):
            frame = {"method": "$/cancel_request", "params": {"requestId": call}}
            wire.write(json.dumps({"jsonrpc": "2.0", **frame}).encode())
            error = wire.answer(call)["error"]
            assert (error["code"], error["data"]["code"]) == (-32800, "withdrawn")
            assert not list(misfits(error, METHOD_ERROR))
        for _ in calls:
            wire.heard(lambda frame: "agentd/turnEnded" in json.dumps(frame))
        rows = wire.call("_agentd/sessions/export", {"key": "main"})["lines"]
        told = [row["content"][0].get("text") for row in rows[-4:]]
        assert told == ["gate c", told[1], "gate d", told[1]]
        assert "Cancelled" in told[1]


def test_a_turn_that_fails_says_so_in_the_words_of_its_fault(scene: World) -> None:
    prompt = [{"type": "text", "text": "fail 401"}]
    error = scene.wire.error("session/prompt", {"sessionId": "main", "prompt": prompt})
    assert error["code"] == -32010
    assert not list(misfits(error, METHOD_ERROR))
    done = scene.shell("send", "fail 401", "--json")
    assert done.code == 1
    assert not list(misfits(done.json, COMMAND_ERROR))
    assert done.json["error"]["code"] == error["data"]["code"]
    assert error["data"]["code"].startswith("provider_")


def test_a_limit_that_is_reached_fails_turns_until_it_is_raised(scene: World) -> None:
    file = scene.shell.root / "config.toml"
    before = file.read_text()
    model = scene.wire.call("_agentd/status")["provider"]["model"]
    prices = f'prices = {{"{model}" = {{input = 1000000.0, output = 1000000.0}}}}'
    file.write_text(f"{before}[budget]\ndaily_usd = 0.01\n{prices}\n")
    assert "budget.daily_usd" in scene.shell.json("reload")["changed"]
    done = scene.shell("send", "say hi", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "provider_budget"), done
    file.write_text(before)
    scene.shell.ok("reload")
    assert scene.shell.json("send", "say hi")["text"] == "hi"


def test_where_facts_are_off_each_command_says_so_and_how_to_have_them(scene: World) -> None:
    shell = scene.fleeting
    file = shell.root / "config.toml"
    before = file.read_text()
    file.write_text(f"{before}[facts]\nenabled = false\n")
    shell.wake_again()
    with Wire(shell.socket) as wire:
        for command in (*FACTS.commands, *FACT_CHANGES.commands, *PROPOSALS.commands):
            method = f"_agentd/{command.path}"
            error = wire.error(method)
            assert (error["code"], error["data"]["code"]) == (-32011, "facts_off"), method
            assert "enabled = true" in error["data"]["cure"]
        assert wire.call("_agentd/memory/forget", {"text": "the zeppelin"})["also"] == []
    (shell.root / "1").write_text("{}\n")  # a file, a number and an id
    used = [row.argv("1") for row in FACT_ROWS if row.command != "memory forget"]
    for argv in (*used, ("send", "/remember my cat is called Isar"), ("send", "/undo")):
        done = plain(shell(*argv, "--json"))
        assert (done.code, done.json["error"]["code"]) == (1, "facts_off"), done
    assert "Isar" not in (shell.workspace / "MEMORY.md").read_text("utf-8")
    assert re.search(
        r"^error: facts are switched off.*\n.*enabled = true", shell("facts", "list").err
    )
    file.write_text(before)


def test_where_the_graph_is_off_each_command_says_so_and_how_to_have_it(scene: World) -> None:
    shell = scene.fleeting
    file = shell.root / "config.toml"
    before = file.read_text()
    file.write_text(f"{before}[graph]\nenabled = false\n")
    shell.wake_again()
    with Wire(shell.socket) as wire:
        declared = (*GRAPH.commands, *EXCHANGE.commands, *PROGRAMS.commands)
        for method in (f"_agentd/{it.path}" for it in declared):
            error = wire.error(method)
            assert (error["code"], error["data"]["code"]) == (-32011, "graph_off"), method
            assert "[graph]" in error["data"]["cure"]
        assert wire.call("_agentd/status")["graph"]["enabled"] is False
        wire.call("_agentd/facts/add", {"text": "my cat is called Isar"})
    (shell.root / "none").write_text(write(Record()))
    for row in (*GRAPH_ROWS, *EXCHANGE_ROWS):
        done = plain(shell(*row.argv("none"), "--json"))
        assert (done.code, done.json["error"]["code"]) == (1, "graph_off"), done
    assert not (shell.workspace / "memory" / "graph").exists()
    file.write_text(before)
    shell.wake_again()
    assert "isar" in shell.ok("facts", "query", "FIND fact FROM user").out


def test_a_mistake_in_the_file_changes_nothing_that_runs(scene: World) -> None:
    file = scene.shell.root / "config.toml"
    before = file.read_text()
    file.write_text(f"{before}[heartbeat]\ninterval = 'soon'\n")
    done = scene.shell("reload", "--json")
    assert (done.code, done.json["error"]["code"]) == (78, "config")
    assert scene.shell("run").code == 78
    file.write_text(before)
    assert scene.shell.json("reload") == {"changed": [], "needs_restart": [], "missing": ""}


def test_a_daemon_that_dies_ends_what_follows_it(scene: World) -> None:
    shell = scene.fleeting
    shell.wake_again()
    with shell.started("logs", "-f", "--json") as follower:
        assert follower.stdout
        follower.stdout.readline()
        os.kill(shell.json("status")["pid"], signal.SIGKILL)
        last = follower.communicate(timeout=30)[0].splitlines()[-1]
    assert json.loads(last)["error"]["code"] == "connection_lost"
    assert follower.returncode == 69


def test_the_page_lists_every_word_with_its_exit_code() -> None:
    ours = {kind.code: kind.exit_code for kind in kinds() if kind.code not in INSIDE}
    assert listed() == {
        **ours,
        "connection_lost": 69,
        "too_large": 1,
        "provider_…": 1,
        "withdrawn": 1,
    }


def test_every_listed_error_is_brought_about() -> None:
    numbers = {int(word) for word in re.findall(r"^\| `(-32\d+)`", PAGE, re.MULTILINE)}
    assert numbers == {v for v in vars(frames).values() if isinstance(v, int) and v < 0}
    made: set[str | int] = {word for _, _, word in COMMANDS} | {row[2] for row in METHODS}
    made |= {number for _, number in LINES} | ALONE | ELSEWHERE.keys()
    assert not (numbers | listed().keys()) - made
    for file, word in ELSEWHERE.values():
        assert word in (ROOT / file).read_text(encoding="utf-8"), (file, word)


def kinds() -> list[type[AgentdError]]:
    """The classes of errors that have a word of their own."""
    known = vars(agentd.core.errors).values()
    return [kind for kind in known if isinstance(kind, type) and issubclass(kind, AgentdError)]


def listed() -> dict[str, int]:
    """The stable words of the page and the exit codes that stand for them."""
    rows = re.findall(r"^\| (`[a-z_…`, ]+`) \| (\d+) \|", PAGE, re.MULTILINE)
    return {word: int(code) for words, code in rows for word in re.findall(r"`([^`]+)`", words)}
