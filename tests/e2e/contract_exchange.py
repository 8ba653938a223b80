"""The part of the table that is about the graph as texts for others."""

from __future__ import annotations

from pathlib import Path

from agentd.domain.concept import Record
from agentd.graph.delta import diff
from agentd.graph.formats.changes import write_delta
from agentd.graph.formats.reading import read
from agentd.graph.formats.writing import write
from tests.e2e.contract import Row, World
from tests.e2e.contract_makers import a_changed_fact, number
from tests.e2e.contract_shapes import DIGEST

STATE = {"state": DIGEST, **dict.fromkeys(("concepts", "contexts", "episodes"), int), "text": str}
CHANGES = {"base": DIGEST, "state": DIGEST, "episodes": int, "gone": int, "text": str}
_WRITTEN = {"file": str, "bytes": int, "state": DIGEST, "episodes": int}


def a_state(world: World) -> Path:
    """A file with the graph as it is."""
    a_changed_fact(world)
    file = world.shell.root / f"state{number(world)}.0c"
    file.write_text(world.wire.call("_agentd/facts/snapshot")["text"])
    return file


def a_state_and_changes(world: World) -> str:
    """The name of a file without anything, and of one that leads from there, without their endings."""
    name = world.shell.root / f"empty{number(world)}"
    after = read(a_state(world).read_text())
    name.with_suffix(".0c").write_text(write(Record()))
    name.with_suffix(".delta").write_text(write_delta(diff(Record(), after)))
    return str(name)


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
    Row("facts changes", ("{it}",), CHANGES, "0M:1.0\nD:", given=a_state),
)
EXCHANGE_ROWS = SNAPSHOT_ROWS
LOCAL_ROWS = (  # these need no daemon
    Row(
        *("facts apply", ("{it}.0c", "{it}.delta"), STATE, "0M:1.0"),
        given=a_state_and_changes,
        without=0,
    ),
)
