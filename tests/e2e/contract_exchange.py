"""The part of the table that is about the graph as texts for others."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agentd.core.graph import Record
from agentd.memory.graph.transfer import message
from agentd.zero.compiler import compile as compiled
from agentd.zero.delta import diff, write_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import write
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple
from tests.e2e.contract import Row, World
from tests.e2e.contract_makers import a_changed_fact, number
from tests.e2e.contract_shapes import DIGEST

STATE = {"state": DIGEST, **dict.fromkeys(("concepts", "contexts", "episodes"), int), "text": str}
CHANGES = {"base": DIGEST, "state": DIGEST, "episodes": int, "gone": int, "text": str}
_WHERE = ContextMeta(datetime(2026, 2, 18, tzinfo=UTC), "shared", "space:team", "a" * 16, "5" * 32)
_SAID = CompilerInput((SemanticTuple("user", "boat name", "Ida"),), _WHERE)
MESSAGE = message(compiled(_SAID).record, ["space:team"])
GRAPH_TEXT = write(compiled(_SAID).record)
SHARED = {"facts": [{"space": frozenset({"team"}), "id": str, "text": str, "sent": bool}]}
SENT = {"text": str, "facts": int, "taken_back": int}
TAKEN = {"new": int, "known": int, "taken_back": int}
_SENT_TO = {"file": str, "bytes": int, "facts": int, "taken_back": int}
_WRITTEN = {"file": str, "bytes": int, "state": DIGEST, "episodes": int}


def a_state(world: World) -> Path:
    """A file with the graph as it is."""
    a_changed_fact(world)
    file = world.shell.root / f"state{number(world)}.0c"
    file.write_text(world.wire.call("_agentd/facts/snapshot")["text"])
    return file


def a_state_and_changes(world: World) -> str:
    """The name of a file without anything, and of one that leads from there, without their
    endings.
    """
    name = world.shell.root / f"empty{number(world)}"
    after = read(a_state(world).read_text())
    name.with_suffix(".0c").write_text(write(Record()))
    name.with_suffix(".delta").write_text(write_delta(diff(Record(), after)))
    return str(name)


def a_shared_fact(world: World) -> str:
    """What a fact is about that is shared and was not sent."""
    n = number(world)
    world.wire.call("_agentd/facts/add", {"text": f"my favourite tide{n} is number {n}"})
    world.wire.call("_agentd/facts/share", {"name": f"number {n}", "space": "team"})
    return f"number {n}"


def a_message(world: World) -> Path:
    """A file that another agent sent."""
    file = world.shell.root / "ada.0c"
    file.write_text(MESSAGE)
    return file


def a_graph_text(world: World) -> Path:
    """A file that says what a graph is."""
    file = world.shell.root / "boats.0c"
    file.write_text(GRAPH_TEXT)
    return file


SNAPSHOT_ROWS = (
    Row(
        *("facts snapshot", (), STATE, "0M:1.0", "facts/snapshot"),
        answer={**STATE, "next": (int, None)},
        given=a_changed_fact,
    ),
    Row(
        *("facts snapshot", ("--output", "now.0c"), _WRITTEN, "written to now.0c"),
        given=a_changed_fact,
    ),
    Row("facts graph-changes", ("{it}",), CHANGES, "0M:1.0\nD:", given=a_state),
)
SHARE_ROWS = (
    Row(
        *("facts share", ("user", "--space", "team"), SHARED, "team  ", "facts/share"),
        {"name": "user", "space": "team"},
        given=a_changed_fact,
    ),
    Row("facts share", (), SHARED, "team  ", given=a_shared_fact),
    Row(
        *("facts unshare", ("{it}",), SHARED, "no longer: ", "facts/unshare", {"name": "{it}"}),
        given=a_shared_fact,
    ),
    Row(
        *("facts send", ("team", "--all"), SENT, "0M:1.0", "facts/send"),
        {"space": "team", "all": True},
        given=a_shared_fact,
    ),
    Row(
        *("facts send", ("team", "-o", "message.0c"), _SENT_TO, "written to message.0c"),
        given=a_shared_fact,
    ),
    Row(
        *("facts take", ("{it}", "--from", "Ada"), TAKEN, "from Ada: ", "facts/take"),
        {"text": MESSAGE, "from": "Ada", "trust": 0.5},
        given=a_message,
    ),
)
EXPORTED = {"folder": str, "files": int, "episodes": int}
TEXT_ROWS = (
    Row(
        *(
            "facts import-graph",
            ("{it}", "--from", "Ada"),
            TAKEN,
            "from Ada: ",
            "facts/import-graph",
        ),
        {"text": GRAPH_TEXT, "from": "Ada"},
        given=a_graph_text,
    ),
    Row(
        *("facts export-graph", (), EXPORTED, "memory/graph", "facts/export-graph"),
        given=a_changed_fact,
    ),
)
CHAIN = {"kept": bool, "entries": int, "bad": (int, None), "why": str, "changed": [str]}
CHAIN_ROWS = (Row("facts chain", (), CHAIN, "no chain is kept", "facts/chain"),)
EXCHANGE_ROWS = (*SNAPSHOT_ROWS, *SHARE_ROWS, *TEXT_ROWS, *CHAIN_ROWS)
LOCAL_ROWS = (  # these need no daemon
    Row(
        *("facts apply", ("{it}.0c", "{it}.delta"), STATE, "0M:1.0"),
        given=a_state_and_changes,
        without=0,
    ),
)
