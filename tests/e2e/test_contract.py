"""Every command and every method of ours, on a real daemon: what it answers, to people and
programs.
"""

from __future__ import annotations

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests import declared
from tests.e2e.contract import (
    Row,
    Wire,
    World,
    commands,
    filled,
    leaves,
    misfits,
    on_terminal,
    plain,
)
from tests.e2e.contract_makers import next_second
from tests.e2e.contract_rows import FOLLOWED, LOGGED_IN, METHODS, ROWS
from tests.e2e.contract_shapes import ALERT, COMMAND_ERROR, RECORD, TURN
from tests.e2e.shell import Done, Shell

INTERACTIVE = frozenset({"up", "run", "chat", "acp", "mcp"})
NO_COMMANDS = (
    ["storage", "migrate"],
    ["import", "nanobot", "."],
    *(["import", "hermes", "."], ["import", "ironclaw", "."], ["nonsense"]),
)


def registered() -> set[str]:
    """The methods of all groups of commands."""
    return {f"_agentd/{command.path}" for command in declared.commands()}


def test_each_command_has_a_row_and_each_row_a_command() -> None:
    assert {row.command for row in ROWS} == leaves()


def test_each_method_has_a_row_and_each_row_a_method() -> None:
    named = {f"_agentd/{row.method}" for row in ROWS if row.method}
    alone = {*(method for method, _, _ in METHODS), *FOLLOWED, *LOGGED_IN}
    assert named | {f"_agentd/{method}" for method in alone} == registered()
    assert len(registered()) > 30


def test_a_command_that_has_a_method_bears_its_name() -> None:
    assert {row.command.replace(" ", "/") for row in ROWS if row.method} == {
        row.method for row in ROWS if row.method
    }


def test_all_but_the_interactive_commands_take_json() -> None:
    known = commands()
    without = {name for name in leaves() if not any("--json" in p.opts for p in known[name].params)}
    assert without == INTERACTIVE


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_explains_what_is_there_and_promises_nothing(name: str) -> None:
    command: Any = commands()[name]
    with command.make_context(f"agentd {name}".strip(), [], resilient_parsing=True) as context:
        text = command.get_help(context)
    assert command.help
    assert not re.search(r"not (yet|implemented)|todo|coming soon|planned", text, re.IGNORECASE)
    assert all(getattr(p, "help", None) for p in command.params if p.param_type_name == "option")


@pytest.mark.parametrize("row", [r for r in ROWS if r.home != "own"], ids=lambda r: r.name)
def test_a_command_and_its_method_answer_alike(world: World, row: Row) -> None:
    shell: Shell = getattr(world, row.home)
    if row.apart:
        shown = on_terminal(shell, *row.used(world), typed=row.typed)
        told = shell(*row.used(world), "--json")
    else:
        first, second = row.used(world), row.used(world)
        with ThreadPoolExecutor() as both:
            program = both.submit(shell, *second, "--json") if row.shape is not None else None
            shown = on_terminal(shell, *first, typed=row.typed)
        told = program.result() if program else None
    check_words(row, plain(shown))
    if told:
        check_json(row, plain(told))
    if row.method:
        made = row.given(world) if row.given else None
        result = world.wire.call(f"_agentd/{row.method}", filled(row.params, made))
        assert not list(misfits(result, row.answer or row.shape))


def check_words(row: Row, done: Done) -> None:
    """A command ended as it should and told a person so in plain words."""
    assert done.code == row.code, done
    assert row.says in done.out, done
    if row.code == 0 and not row.notes:
        assert done.err == ""
        assert row.lines or row.typed or "+00:00" not in done.out, "times for people are short"


def check_json(row: Row, done: Done) -> None:
    """A command ended as it should and printed the shape of its row, and nothing else."""
    assert (done.code, done.err) == (row.code, ""), done
    for value in done.lines if row.lines else [done.json]:
        assert not list(misfits(value, row.shape))


@pytest.mark.parametrize(
    ("method", "params", "shape"), METHODS, ids=[method for method, *_ in METHODS]
)
def test_a_method_without_a_command_of_its_own(
    world: World, method: str, params: dict[str, Any], shape: Any
) -> None:
    assert not list(misfits(world.wire.call(f"_agentd/{method}", params), shape))


@pytest.mark.parametrize("shell_words", NO_COMMANDS, ids=" ".join)
def test_what_is_no_command_is_a_mistake_of_usage(world: World, shell_words: list[str]) -> None:
    done = plain(world.quiet(*shell_words, "--json"))
    assert done.code == 2
    assert done.json["error"]["message"].startswith("No such command")


def test_every_command_says_that_no_daemon_runs(world: World) -> None:
    """All at once, in a home of their own; those that need no daemon do their work."""
    rows = list({row.command: row for row in ROWS if row.without is not None}.values())
    made = [row.given(world) if row.given else None for row in rows]
    for name in [it for it in made if isinstance(it, str)]:
        if (there := world.shell.root / name).exists():
            (world.quiet.root / name).symlink_to(there)
    with ThreadPoolExecutor(4) as several:
        all_done = several.map(
            lambda row, it: world.quiet(*row.argv(it), *json_of(row)), rows, made
        )
        for row, done in zip(rows, all_done, strict=True):
            assert plain(done).code == row.without, (row.name, done)
            if row.without != 69:
                continue
            if json_of(row):
                assert not list(misfits(done.json, COMMAND_ERROR))
                assert done.json["error"]["code"] == "unreachable"
                assert (done.json["error"]["cure"] != "", done.err) == (True, "")
            else:
                assert (done.out, done.err[:7], done.err.count("\n")) == ("", "error: ", 2)


def json_of(row: Row) -> tuple[str, ...]:
    return () if row.command in INTERACTIVE else ("--json",)


@pytest.mark.parametrize(
    ("argv", "shape"),
    [(("alerts", "follow"), ALERT), (("logs", "-n", "1", "--follow"), RECORD)],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_what_is_followed_goes_on_until_it_is_interrupted(
    world: World, argv: tuple[str, ...], shape: Any
) -> None:
    next_second(world)
    world.wire.call("_agentd/alerts/test")  # for a client that has not come yet
    with world.shell.started(*argv, "--json") as follower:
        assert follower.stdout
        assert not list(misfits(json.loads(follower.stdout.readline()), shape))
        follower.send_signal(signal.SIGINT)
        rest, _ = follower.communicate(timeout=30)
    assert follower.returncode == 130
    assert all(not list(misfits(json.loads(line), shape)) for line in rest.splitlines())


def test_alerts_and_records_are_followed_on_the_socket(world: World) -> None:
    with Wire(world.shell.socket) as wire:
        assert wire.call("_agentd/alerts/follow") == {"following": True}
        next_second(world)
        sent = world.wire.call("_agentd/alerts/test")
        alert = wire.heard(lambda frame: frame.get("params", {}).get("text") == sent["text"])
        assert alert["method"] == "_agentd/alert"
        assert not list(misfits(alert["params"], ALERT))
        place = wire.call("_agentd/logs", {"limit": 1})["after"]
        wire.start("_agentd/logs/follow", {"after": place, "level": "info"})
        wire.call("_agentd/memory/index")
        job = wire.call("_agentd/jobs/add", {"text": "a line for the log", "in": "1d"})
        wire.call("_agentd/jobs/remove", {"id": job["id"]})
        logged = wire.heard(lambda frame: frame.get("method") == "_agentd/log")
        assert not list(misfits(logged["params"], {"records": [RECORD]}))


def test_facts_are_kept_taken_back_and_forgotten_by_typed_commands_too(world: World) -> None:
    shell = world.shell

    def typed(text: str, session: str = "chat:farm") -> Done:
        return plain(shell("send", text, "--session", session, "--json"))

    said = typed("/remember my rabbit is called Auguste").json
    assert not list(misfits(said, TURN))
    assert said["text"].startswith("Remembered: The user's rabbit is called Auguste. (")
    said = typed("/remember my rabbit is called Auguste").json
    assert said["text"].startswith("I know that already")
    assert typed("/undo", "chat:elsewhere").code == 1, "nothing was learnt there"
    assert (
        typed("/undo").json["text"].startswith("Taken back: The user's rabbit is called Auguste.")
    )
    assert typed("/undo").code == 1
    for animal in ("rabbit", "horse"):
        typed(f"/remember my {animal} is called Auguste")
    offered = re.findall("→ /forget ([a-z0-9]+)", typed("/forget Auguste").json["text"])
    assert len(offered) == 2
    for fact_id in offered:
        assert typed(f"/forget {fact_id}").json["text"].startswith("Forgotten")
    for command in ("/remember my rabbit is called Auguste", "/forget Auguste", "/undo"):
        refused = typed(command, "group:club")
        assert (refused.code, refused.json["error"]["code"]) == (2, "invalid")


def test_a_daemon_starts_and_stops_and_says_what_became_of_open_calls(world: World) -> None:
    shell = world.fleeting
    assert shell.json("restart") == {"restarted": True}
    first = shell.json("status")["pid"]
    done = plain(on_terminal(shell, "restart"))
    assert (done.code, done.out) == (0, "the daemon has restarted\n")
    assert shell.json("status")["pid"] != first
    assert shell.json("stop") == {"stopped": True}
    shell.ok("restart")
    with shell.started("logs", "-f", "--json") as follower, Wire(shell.socket) as wire:
        assert follower.stdout
        follower.stdout.readline()
        wire.greet()
        text = [{"type": "text", "text": "gate never"}]
        prompt = wire.start("session/prompt", {"sessionId": "main", "prompt": text})
        wire.heard(lambda frame: frame.get("method") == "_agentd/accepted")
        while "room_judged" not in follower.stdout.readline():
            pass  # what it was told before it follows says nothing of this turn
        stopped = wire.start("_agentd/stop")
        assert not list(misfits(wire.answer(stopped)["result"], {"stopping": bool, "pid": int}))
        cut = wire.answer(prompt)["error"]
        assert (cut["code"], cut["data"]["code"]) == (-32012, "shutting_down")
        last = follower.communicate(timeout=30)[0].splitlines()[-1]
    assert json.loads(last)["error"]["code"] == "shutting_down"
    assert follower.returncode == 75
    done = plain(on_terminal(shell, "stop"))
    assert done.code in {0, 69}, "it may be gone already"
