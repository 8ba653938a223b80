"""What the graph costs in a model's tokens, form by form: `python -m benchmarks.graph_tokens`.

Tokens are those of cl100k_base, counted by toktok-rs, which carries the vocabulary with it. The
graph is invented: names of one to four words, three facts for each concept, confidences of two
digits. The table of this module has all figures; as part of `python -m benchmarks` it holds the
goals alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from random import Random
from time import perf_counter

import toktok
from msgspec import Struct

from agentd.core.graph import ConceptHash, Edge, Record
from agentd.zero import compiler, parse
from agentd.zero.decompiler import decompile
from agentd.zero.delta import apply, diff, merge_records, read_delta, write_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import WritingLevel, at_level, group_by_subject, write
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple
from benchmarks import machine
from benchmarks.row import Row

SCALES = 10, 100, 1_000, 10_000
DENSITY = 3
A_DAY = 1_000  # concepts that the statements of one day are about
FIRST_DAY = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
SEED = 20261122
ENCODING = "cl100k_base"

_QUALITIES = [
    "old",
    "new",
    "small",
    "large",
    "green",
    "quiet",
    "daily",
    "weekly",
    "remote",
    "local",
    "public",
    "private",
    "spare",
    "early",
    "late",
    "northern",
    "southern",
    "winter",
    "summer",
    "annual",
    "digital",
    "wooden",
    "paper",
    "shared",
    "family",
    "office",
    "garden",
]
_THINGS = [
    "agent",
    "memory",
    "bicycle",
    "kitchen",
    "budget",
    "invoice",
    "calendar",
    "meeting",
    "project",
    "server",
    "laptop",
    "printer",
    "doctor",
    "dentist",
    "teacher",
    "neighbour",
    "holiday",
    "flight",
    "passport",
    "ticket",
    "garden",
    "tomato",
    "recipe",
    "bakery",
    "library",
    "guitar",
    "concert",
    "festival",
    "marathon",
    "insurance",
    "contract",
    "deadline",
    "report",
    "database",
    "backup",
    "camera",
    "telescope",
    "battery",
    "heating",
    "window",
    "balcony",
    "elevator",
    "station",
    "harbour",
    "museum",
    "lecture",
]
_NAMES = [
    "anna",
    "ben",
    "clara",
    "david",
    "emma",
    "felix",
    "greta",
    "hugo",
    "ida",
    "jonas",
    "klara",
    "leo",
    "mia",
    "nils",
    "olga",
    "paul",
]
_PREDICATES = [
    "needs",
    "uses",
    "has_part",
    "knows",
    "likes",
    "owns",
    "works_at",
    "lives_in",
    "belongs_to",
    "depends_on",
    "is_a",
    "prefers",
    "located_in",
    "created_by",
    "part_of",
    "causes",
    "replaces",
]


Labels = Mapping[ConceptHash, str]


class Form(Struct, frozen=True):
    """One way to say the graph. `keeps` says what of it can be read back, as it was proven here."""

    name: str
    tokens: int
    chars: int
    micros: float  # to write it, for each relation
    keeps: str


class Measured(Struct, frozen=True):
    """All forms of a graph of this size, by name."""

    concepts: int
    relations: int
    forms: dict[str, Form]

    def saved(self, form: str, than: str) -> float:
        """How many per cent fewer tokens the one form has than the other."""
        return 100 * (1 - self.forms[form].tokens / self.forms[than].tokens)


def count_tokens(text: str) -> int:
    """The tokens of a text."""
    return int(toktok.batch_count([text], ENCODING)[0])


def invented(concepts: int) -> Sequence[CompilerInput]:
    """Statements about so many concepts, one day after the other, the same at every call."""
    chance = Random(SEED + concepts)
    labels = _labels(concepts, chance)
    days = []
    for day, start in enumerate(range(0, concepts, A_DAY)):
        tuples = [
            SemanticTuple(label, predicate, chance.choice(labels), round(chance.uniform(0.3, 1), 2))
            for label in labels[start : start + A_DAY]
            for predicate in chance.sample(_PREDICATES, DENSITY)
        ]
        context = ContextMeta(FIRST_DAY + timedelta(days=day), "facts", "main")
        days.append(CompilerInput(tuple(tuples), context))
    return days


def _labels(count: int, chance: Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        words = [chance.choice(_THINGS)]
        if chance.random() < 0.7:
            words.insert(0, chance.choice(_QUALITIES))
        if chance.random() < 0.5:
            words.insert(0, chance.choice(_NAMES))
        if chance.random() < 0.2:
            words.append(str(chance.randint(2, 99)))
        found["-".join(words)] = None
    return list(found)


def measured(concepts: int) -> Measured:
    """Every form of an invented graph, each read back where that can be done."""
    source = invented(concepts)
    began = perf_counter()
    graphs = [compiler.compile(day) for day in source]
    compiling = perf_counter() - began
    record = merge_records(graph.record for graph in graphs)
    edges, labels = _edges(record), {one.hash: one.label for one in record.concepts}
    old = _without_a_tenth(record)
    change = diff(old, record)
    writers: dict[str, tuple[Callable[[], str], Callable[[str], str]]] = {
        ".0c (L2)": (lambda: write(record), lambda t: _whole(read(t) == record)),
        "L0": (lambda: at_level(record, WritingLevel.SKELETON), lambda _: "hashes of concepts"),
        "L1": (lambda: at_level(record, WritingLevel.STRUCTURE), lambda _: "labels, facts"),
        "delta of a tenth": (
            lambda: write_delta(change),
            lambda t: _whole(apply(old, read_delta(t)) == record),
        ),
        "JSON objects": (
            lambda: _json(_objects(edges, labels)),
            lambda t: _facts_of(t, edges, labels),
        ),
        "JSON arrays": (
            lambda: _json([list(one) for one in _facts(edges, labels)]),
            lambda t: _facts_of(t, edges, labels),
        ),
        "markdown lines": (lambda: _markdown(edges, labels), lambda _: "facts, two digits"),
        "plain sentences": (lambda: _sentences(edges, labels), lambda _: "facts"),
        "prompt": (lambda: group_by_subject(edges, labels), lambda _: "facts, two digits"),
    }
    texts = [graph.graph_text for graph in graphs]
    forms = {".0, verbose": _verbose(texts, record, compiling)}
    for name, (say, check) in writers.items():
        began = perf_counter()
        text = say()
        micros = 1e6 * (perf_counter() - began) / len(record.relations)
        forms[name] = Form(name, count_tokens(text), len(text), micros, check(text))
    return Measured(len(record.concepts), len(record.relations), forms)


def _verbose(texts: Sequence[str], record: Record, seconds: float) -> Form:
    """The text of each day, one behind the other."""
    kept = _whole(merge_records(decompile(parse(text)).record for text in texts) == record)
    tokens, chars = sum(map(count_tokens, texts)), sum(map(len, texts))
    return Form(".0, verbose", tokens, chars, 1e6 * seconds / len(record.relations), kept)


def _whole(is_equal: bool) -> str:
    return "all" if is_equal else "NOT ALL"


def _edges(record: Record) -> Sequence[Edge]:
    """The facts of a record in which each was said once, those of a subject together."""
    edges = [
        Edge(one.fact, one.subject, one.predicate, one.object, one.confidence, 1, one.created)
        for one in record.relations
    ]
    return sorted(edges, key=lambda edge: edge.subject.value)


def _facts(edges: Sequence[Edge], labels: Labels) -> list[tuple[str, str, str, float]]:
    return [
        (labels[one.subject], one.predicate, labels[one.object], one.confidence) for one in edges
    ]


def _objects(edges: Sequence[Edge], labels: Labels) -> list[dict[str, object]]:
    names = "subject", "predicate", "object", "confidence"
    return [dict(zip(names, one, strict=True)) for one in _facts(edges, labels)]


def _json(rows: Sequence[object]) -> str:
    """One row to a line: what is easy to read, and no dearer than all in one."""
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows) + "\n]\n"


def _markdown(edges: Sequence[Edge], labels: Labels) -> str:
    return "".join(f"- {s} {p} {o} ({c:.2f})\n" for s, p, o, c in _facts(edges, labels))


def _sentences(edges: Sequence[Edge], labels: Labels) -> str:
    """As people say it, without how sure it is."""
    spoken = (
        f"{s} {p} {o}".replace("-", " ").replace("_", " ") for s, p, o, _ in _facts(edges, labels)
    )
    return "".join(f"{one[0].upper()}{one[1:]}.\n" for one in spoken)


def _facts_of(text: str, edges: Sequence[Edge], labels: Labels) -> str:
    """Whether JSON gives the facts back."""
    rows = [
        tuple(one.values()) if isinstance(one, dict) else tuple(one) for one in json.loads(text)
    ]
    return "facts" if rows == _facts(edges, labels) else "NOT ALL"


def _without_a_tenth(record: Record) -> Record:
    """The record before its last tenth of facts was said."""
    kept = record.relations[: len(record.relations) * 9 // 10]
    said = {end for one in kept for end in (one.subject, one.object)}
    return Record(tuple(one for one in record.concepts if one.hash in said), record.contexts, kept)


def table(found: Measured) -> str:
    """The figures of one size as markdown."""
    lines = [
        f"### {found.concepts:,} concepts, {found.relations:,} relations",
        "",
        "| form | tokens | a concept | a relation | characters | µs a relation | keeps |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for form in found.forms.values():
        each = f"{form.tokens / found.concepts:.1f} | {form.tokens / found.relations:.1f}"
        lines.append(
            f"| {form.name} | {form.tokens:,} | {each} | {form.chars:,} | {form.micros:.1f} "
            f"| {form.keeps} |"
        )
    return "\n".join(lines)


async def rows() -> AsyncIterator[Row]:
    """The goals, at every size."""
    for scale in SCALES:
        for row in goals(measured(scale)):
            yield row


def goals(found: Measured) -> list[Row]:
    """What is to hold of the forms at this size."""
    at = f"at {found.concepts:,} concepts"
    compact = found.saved(".0c (L2)", ".0, verbose")
    skeleton = found.saved("L0", ".0c (L2)")
    prompt = found.saved("prompt", "markdown lines")
    return [
        Row(f"graph: `.0c` below verbose `.0` {at}", [compact], "% tokens", least=50),
        Row(f"graph: L0 below L2 {at}", [skeleton], "% tokens", least=80),
        Row(f"graph: prompt form below markdown lines {at}", [prompt], "% tokens", least=0),
    ]


def main() -> int:
    """Print every figure; 1 if a goal was missed."""
    print(f"{machine.facts()}, {ENCODING} by toktok-rs {version('toktok-rs')}")
    missed = False
    for scale in SCALES:
        found = measured(scale)
        print(f"\n{table(found)}\n\n| what | measured | goal | verdict |\n|---|---|---|---|")
        for row in goals(found):
            print(row.as_markdown(), flush=True)
            missed |= "MISSED" in row.as_markdown()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
