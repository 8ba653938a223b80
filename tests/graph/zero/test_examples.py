"""The graphs that ship with agentd are read and run."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
import tomli

from agentd.graph.zero import Array, Confidence, Graph, Hash32, Map, execute, parse
from agentd.graph.zero.examples import NAMES, example
from agentd.graph.zero.graph import Operation

ROOT = Path(__file__).resolve().parents[3]


def kinds(graph: Graph) -> Counter[str]:
    return Counter(
        node.type.op if isinstance(node.type, Operation) else type(node.type).__name__
        for node in graph.nodes
    )


def test_the_schema_tells_the_fields_of_each_kind_of_entry() -> None:
    graph = parse(example("schema"))
    assert kinds(graph) == {"Constant": 4, "CreateMap": 1, "MergeMap": 1}
    output = execute(graph).outputs["output"]
    assert isinstance(output, Map)
    assert set(output) == {"format", "concept", "relation", "context", "record"}
    record = output["record"]
    assert isinstance(record, Map)
    required = record["required"]
    assert required == Array(["record_hash", "concepts", "relations", "context", "proof"])


def test_the_example_holds_hashes_and_relations_of_its_concepts() -> None:
    graph = parse(example("example_memory"))
    assert len(graph.nodes) == 41
    assert kinds(graph) == {
        "SetField": 16,
        "Constant": 13,
        "Hash": 7,
        "MergeMap": 3,
        "CreateMap": 2,
    }
    output = execute(graph).outputs["output"]
    assert isinstance(output, Map)
    concepts, relations = output["concepts"], output["relations"]
    assert isinstance(concepts, Map)
    assert isinstance(relations, Map)
    assert (len(concepts), len(relations)) == (6, 5)
    for label, found in concepts.items():
        assert found == Hash32(sha256(label.encode()).digest())
    relation = relations["agent_needs_memory"]
    assert isinstance(relation, Map)
    assert relation["confidence"] == Confidence(0.98)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_packaged(name: str) -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packaged = project["tool"]["setuptools"]["package-data"]["agentd"]
    files = [path for pattern in packaged for path in (ROOT / "agentd").glob(pattern)]
    assert ROOT / f"agentd/graph/zero/{name}.0" in files
