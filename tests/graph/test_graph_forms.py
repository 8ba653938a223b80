"""The examples of docs/graph-forms.md, as the code writes them."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentd.core.graph import Edge, Record
from agentd.memory.graph.journal import LOG, JournalChain
from agentd.testing.clock import FakeClock
from agentd.zero.delta import apply, diff, read_delta, write_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.records import canonical
from agentd.zero.formats.writing import WritingLevel, at_level, body, group_by_subject, write
from tests.graph.formats.records import NOON, concept, context, relation
from tests.graph.test_chain import Files

PAGE = (Path(__file__).parents[2] / "docs/graph-forms.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^```([a-z0-9-]+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))

SAID = context(source="user_prompt", scope="design")
MEMORY, PYTHON = concept("long-term-memory", 0.98), concept("python")
AGENT = concept("agent", 0.98, aliases=("ai-agent",))
NEEDS = relation(AGENT, "needs", MEMORY, SAID, 0.98)
USES = relation(AGENT, "uses", PYTHON, SAID, 1.0)
RECORD = canonical(Record((MEMORY, AGENT), (SAID,), (NEEDS,)))
LATER = canonical(
    Record((MEMORY, replace(AGENT, confidence=1.0), PYTHON), (SAID,), (USES,)),
)
ODD = concept("c:a, b", 0.5, NOON - timedelta(days=1), NOON, ("x=y",))
LABELS = {one.hash: one.label for one in (AGENT, MEMORY, PYTHON)}
EDGES = [
    Edge(one.fact, one.subject, one.predicate, one.object, one.confidence, 1, NOON)
    for one in (NEEDS, USES)
]


def written():
    return {
        "0c": write(RECORD),
        "0c-line": body(Record((ODD,), (SAID,)))[1] + "\n",
        "l0": at_level(RECORD, WritingLevel.SKELETON),
        "l1": at_level(RECORD, WritingLevel.STRUCTURE),
        "prompt": group_by_subject(EDGES, LABELS),
        "delta": write_delta(diff(RECORD, LATER)),
    }


@pytest.mark.parametrize("name", list(written()))
def test_an_example_is_what_the_code_writes(name):
    assert EXAMPLES[name] == written()[name]


async def test_the_chain_looks_as_shown():
    files = Files()
    await JournalChain(files, FakeClock(), lambda: bytes(32)).append(
        "inserted", b"agent needs memory"
    )
    assert EXAMPLES["chain"].encode() == files.held[LOG]


def test_the_examples_can_be_read_and_there_are_no_others():
    assert EXAMPLES.keys() == {*written(), "chain"}
    assert read(EXAMPLES["0c"]) == RECORD
    assert apply(RECORD, read_delta(EXAMPLES["delta"])) == LATER
    assert len(PAGE.splitlines()) <= 200
