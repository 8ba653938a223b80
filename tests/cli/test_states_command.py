"""`agentd facts snapshot`, `changes` and `apply`: states of the graph in files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.core.graph import Record
from agentd.zero.delta import checkpoint, diff, write_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.seal import MOST_CHARS, seal_lines
from agentd.zero.formats.writing import write
from tests.graph.formats.records import grown
from tests.scripted_daemon import Refusal, ScriptedDaemon, Wire

runner = CliRunner()
OLD, NEW = grown(4), grown(6)
DELTA = write_delta(diff(OLD, NEW))


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        yield daemon


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.0c").write_text(write(OLD))
    (tmp_path / "week.delta").write_text(DELTA)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def applied(*argv: str, typed: str | bytes | None = None) -> Any:
    return runner.invoke(app, ["facts", "apply", *argv], input=typed)


def test_changes_make_the_new_state_to_the_letter(folder: Path) -> None:
    assert applied("old.0c", "week.delta").stdout == write(NEW)
    assert applied("old.0c", "-", "-o", "new.0c", typed=DELTA).exit_code == 0
    assert (folder / "new.0c").read_text() == write(NEW)
    assert (folder / "new.0c").stat().st_mode & 0o777 == 0o600


def test_a_state_may_be_brought_up_to_date_where_it_stands(folder: Path) -> None:
    assert applied("old.0c", "week.delta", "-o", "old.0c").exit_code == 0
    assert read((folder / "old.0c").read_text()) == NEW
    assert files(folder) == ["old.0c", "week.delta"]


def elsewhere() -> str:
    """The changes with the name of another state at their end."""
    head, named, *rest = DELTA.splitlines()[:-1]
    return seal_lines([head, f"{named[:-64]}{'0' * 64}", *rest])


WRONG = {
    "tampered": (
        DELTA.replace("C:", "C:0", 1),
        r"-:\d+:3: the hash is not that of the lines above",
    ),
    "cut off": (DELTA[:-70], r"-:\d+:1: the text has no last line H:"),
    "no changes": (write(OLD), "-:2:1: these are no changes"),
    "empty": ("", "-:1:1: a graph's text begins with"),
    "not UTF-8": (b"0M:1.0\n\xff", "-:2:1: the bytes here are no UTF-8"),
    "for another state": (write_delta(diff(Record(), NEW)), "-: the changes are for the state"),
    "leading elsewhere": (elsewhere(), "-: the changes do not lead to the state"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_and_no_file_changes(folder: Path, what: str) -> None:
    text, why = WRONG[what]
    before = (folder / "old.0c").read_bytes()
    done = applied("old.0c", "-", "-o", "old.0c", typed=text)
    assert done.exit_code == 1
    assert re.match(f"error: {why}", done.stderr), done.stderr
    assert (folder / "old.0c").read_bytes() == before
    assert files(folder) == ["old.0c", "week.delta"]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "huge.0c").open("wb") as huge:
        huge.truncate(MOST_CHARS + 1)
    done = applied("huge.0c", "week.delta")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "huge.0c: has more than" in done.stderr


def test_where_nothing_can_be_written_what_was_there_stays(folder: Path) -> None:
    done = applied("old.0c", "week.delta", "-o", "nowhere/new.0c")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "nowhere/new.0c: No such file" in done.stderr


class Telling:
    """A daemon's method that gives a state in parts; after the first part, the state changes
    once.
    """

    def __init__(self) -> None:
        self.record = OLD
        self.asked = 0

    def __call__(self, params: dict[str, Any], _: Wire) -> Any:
        self.asked += 1
        if self.asked == 2:
            self.record = NEW
        held, text = checkpoint(self.record), write(self.record)
        if params.get("state", held.hash.hex) != held.hash.hex:
            raise Refusal(-32012, "the graph changed", code="busy", cure="begin again")
        after = params.get("after", 0)
        end = after + len(text) // 3
        counts = {"concepts": held.concepts, "contexts": held.contexts, "episodes": held.relations}
        told = {"state": held.hash.hex, **counts, "text": text[after:end]}
        return {**told, "next": end if end < len(text) else None}


def test_a_state_that_changed_while_it_was_read_is_read_again(daemon: ScriptedDaemon) -> None:
    daemon.on("_agentd/facts/snapshot", Telling())
    done = runner.invoke(app, ["facts", "snapshot"])
    assert (done.exit_code, done.stdout) == (0, write(NEW))


def test_one_that_changes_all_the_time_is_told_to_be_busy(daemon: ScriptedDaemon) -> None:
    def refused(params: dict[str, Any], _: Wire) -> Any:
        raise Refusal(-32012, "the graph changed", code="busy", cure="begin again")

    daemon.on("_agentd/facts/snapshot", refused)
    done = runner.invoke(app, ["facts", "snapshot", "--json"])
    assert done.exit_code == 75
    assert len(daemon.params_of("_agentd/facts/snapshot")) == 6


def test_what_changed_leads_from_the_file_to_the_state_of_now(
    daemon: ScriptedDaemon, folder: Path
) -> None:
    daemon.on("_agentd/facts/snapshot", Telling())
    done = runner.invoke(app, ["facts", "graph-changes", "old.0c", "--json"])
    told = json.loads(done.stdout)
    assert told["text"] == DELTA
    assert (told["base"], told["state"]) == (checkpoint(OLD).hash.hex, checkpoint(NEW).hash.hex)
