from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import GraphError
from agentd.core.graph import Concept, ConceptContext, Digest, Record, Relation
from agentd.zero import Array, Constant, Map, Operation, Value, compiler, execute, parse
from agentd.zero.call import MAX_STEPS
from agentd.zero.decompiler import decompile
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash
from agentd.zero.naming import Aliases
from agentd.zero.record_graph import emit, record_hash, trace_hash
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple
from tests.graph.zero.graphs import example

NOON = datetime(2026, 2, 9, 12, tzinfo=UTC)
MAIN = ContextMeta(NOON, "user", "main")
TUPLES = (
    SemanticTuple("0-memory", "solves", "Long Term Memory", 0.97),
    SemanticTuple("agent", "needs", "LongTermMemory", 0.5, refs=("k3f9",)),
    SemanticTuple("Agent", "is a", "program", 0.8),
)
TRICKY = st.text(alphabet='ab:|>,=#{}[]\n"\\ _-.🙂é\u0301', min_size=1, max_size=8)
SURE = st.floats(0, 1)
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def compiled(*tuples: SemanticTuple, context: ContextMeta = MAIN) -> Record:
    return compiler.compile(CompilerInput(tuples, context)).record


def named(record: Record) -> dict[str, Concept]:
    return {concept.label: concept for concept in record.concepts}


def output(text: str) -> Map:
    found = execute(parse(text)).outputs["output"]
    assert isinstance(found, Map)
    return found


def entry(whole: Value, name: str) -> Map | Array:
    assert isinstance(whole, Map)
    found = whole[name]
    assert isinstance(found, Map | Array)
    return found


def rows(whole: Map, section: str) -> list[Map]:
    found = entry(whole, section)
    assert isinstance(found, Map)
    return [row for row in found.values() if isinstance(row, Map)]


def raw(value: Value) -> bytes:
    assert isinstance(value, Digest)
    return value.value


def test_concepts_stand_in_a_record_once_with_the_highest_confidence() -> None:
    record = compiled(*TUPLES)
    assert set(named(record)) == {"0-memory", "long-term-memory", "agent", "program"}
    assert named(record)["long-term-memory"].confidence == 0.97
    assert named(record)["agent"].confidence == 0.8
    assert len(record.relations) == 3


def test_every_hash_follows_from_the_words() -> None:
    record = compiled(TUPLES[1])
    (context,) = record.contexts
    (relation,) = record.relations
    assert context.hash == context_hash(NOON, "user", "main")
    assert relation.fact == fact_hash("agent", "needs", "long-term-memory")
    assert relation.episode == episode_hash(relation.fact, context.hash)
    assert relation.subject == concept_hash("agent")
    assert relation.object == concept_hash("long-term-memory")


def test_a_record_is_in_the_order_of_its_hashes_whatever_was_said_first() -> None:
    there, back = (
        compiler.compile(CompilerInput(order, MAIN)) for order in (TUPLES, tuple(reversed(TUPLES)))
    )
    assert there == back
    hashes = [concept.hash for concept in there.record.concepts]
    assert hashes == sorted(hashes)


def test_one_fact_in_two_contexts_is_two_episodes() -> None:
    (one,) = compiled(TUPLES[0]).relations
    (other,) = compiled(TUPLES[0], context=ContextMeta(NOON, "user", "main", session="s")).relations
    assert one.fact == other.fact
    assert one.episode != other.episode


def test_a_repetition_in_one_context_is_one_episode() -> None:
    (relation,) = compiled(
        SemanticTuple("a", "b", "c", 0.9, refs=("2",)),
        SemanticTuple("A", "B", "C", 0.4, refs=("1", "2")),
    ).relations
    assert (relation.confidence, relation.refs) == (0.9, ("1", "2"))


def test_what_is_said_last_of_a_fact_counts() -> None:
    (relation,) = compiled(
        SemanticTuple("a", "b", "c", 0.9), SemanticTuple("a", "b", "c", 0.4, denied=True)
    ).relations
    assert (relation.denied, relation.confidence) == (True, 0.4)


def test_other_names_become_aliases_of_the_concept() -> None:
    table = Aliases({"ltm": "long-term-memory"})
    statements = (
        SemanticTuple(
            "LTM", "is", "useful", 1.0, subject_aliases=("LTM store", "Long term memory")
        ),
        SemanticTuple("agent", "needs", "Long Term Memory"),
    )
    record = compiler.compile(CompilerInput(statements, MAIN), table).record
    assert named(record)["long-term-memory"].aliases == ("ltm", "ltm-store")


def test_times_are_kept_in_utc() -> None:
    east = ContextMeta(NOON.astimezone(timezone(timedelta(hours=3))), "user", "main")
    assert compiler.compile(CompilerInput(TUPLES, east)) == compiler.compile(
        CompilerInput(TUPLES, MAIN)
    )


def test_no_statements_leave_the_context_alone() -> None:
    made = compiler.compile(CompilerInput((), MAIN))
    assert (made.record.concepts, made.record.relations) == ((), ())
    assert len(made.record.contexts) == 1
    assert decompile(parse(made.graph_text)).record == made.record
    assert decompile(parse(emit(Record()))).record == Record()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (SemanticTuple("", "b", "c"), "the label '' says nothing"),
        (SemanticTuple("a", " ", "c"), "the predicate ' ' says nothing"),
        (SemanticTuple("a", "b", "c", 1.5), "the confidence 1.5 of 'a' is outside 0 to 1"),
        (SemanticTuple("a", "b", "c", float("nan")), "the confidence nan"),
        (SemanticTuple("a", "b", "c", refs=("\ud800",)), "half of one"),
    ],
)
def test_a_statement_that_means_nothing_is_refused(statement: SemanticTuple, why: str) -> None:
    with pytest.raises(GraphError, match=why):
        compiled(statement)


def test_the_graph_merges_maps_and_uses_four_operations() -> None:
    graph = parse(compiler.compile(CompilerInput(TUPLES, MAIN)).graph_text)
    kinds = {type(node.type) for node in graph.nodes}
    used = {node.type.op for node in graph.nodes if isinstance(node.type, Operation)}
    assert kinds == {Constant, Operation}
    assert used == {"CreateMap", "SetField", "Hash", "MergeMap"}


def test_the_graph_computes_every_hash_of_the_record() -> None:
    made = compiler.compile(CompilerInput((*TUPLES, SemanticTuple("a|b\\", "c:d", '{"#"}')), MAIN))
    whole = output(made.graph_text)
    record = made.record
    assert [raw(row["concept_hash"]) for row in rows(whole, "concepts")] == [
        concept.hash.value for concept in record.concepts
    ]
    assert [raw(row["context_hash"]) for row in rows(whole, "context")] == [
        context.hash.value for context in record.contexts
    ]
    fields = ("fact_hash", "episode_hash", "subject_hash", "object_hash", "context_hash")
    assert [tuple(raw(row[name]) for name in fields) for row in rows(whole, "relations")] == [
        tuple(
            name.value
            for name in (said.fact, said.episode, said.subject, said.object, said.context)
        )
        for said in record.relations
    ]


def test_the_graph_yields_what_the_schema_asks_for() -> None:
    schema = output(example("schema"))
    context = ContextMeta(NOON, "user", "main", "a", "s")
    whole = output(compiler.compile(CompilerInput(TUPLES, context)).graph_text)
    for kind, found in (
        ("concept", rows(whole, "concepts")),
        ("context", rows(whole, "context")),
        ("relation", rows(whole, "relations")),
        ("record", [whole]),
    ):
        wanted = entry(entry(schema, kind), "required")
        assert wanted
        assert found
        assert all(set(wanted) <= set(row) for row in found)


def test_the_proof_holds_what_the_graph_computes() -> None:
    made = compiler.compile(CompilerInput(TUPLES, MAIN))
    whole = output(made.graph_text)
    proof = whole["proof"]
    assert isinstance(proof, Map)
    assert proof["record_hash"] == raw(whole["record_hash"]).hex() == record_hash(made.record).hex()
    assert proof["trace_hash"] == raw(whole["trace_hash"]).hex() == trace_hash(made.record).hex()


def test_the_trace_is_the_hash_of_the_hashes_in_their_order() -> None:
    record = compiled(TUPLES[0])
    parts = [row.hash.value for row in (*record.concepts, *record.contexts)]
    parts += [value.value for said in record.relations for value in (said.fact, said.episode)]
    assert trace_hash(record) == sha256(b"".join(parts)).digest()


def test_the_utterance_and_the_metadata_are_kept_beside_the_record() -> None:
    context = ContextMeta(NOON, "user", "main", "a", "s", {"channel": "chat"})
    text = compiler.compile(CompilerInput(TUPLES, context, 'He said: "{#}"\n')).graph_text
    read = decompile(parse(text))
    assert (read.utterance, read.metadata) == ('He said: "{#}"\n', {"channel": "chat"})


def test_a_label_of_ten_kilobytes_is_read_back() -> None:
    made = compiler.compile(CompilerInput((SemanticTuple("é|" * 3_400, "is", "long"),), MAIN))
    assert decompile(parse(made.graph_text)).record == made.record


@pytest.mark.torture
def test_a_record_may_have_more_nodes_than_a_run_usually_has_steps() -> None:
    tuples = tuple(SemanticTuple(f"a{at % 40}", f"is {at}", f"b{at % 30}") for at in range(1_100))
    made = compiler.compile(CompilerInput(tuples, MAIN))
    assert len(parse(made.graph_text).nodes) > MAX_STEPS
    assert decompile(parse(made.graph_text)).record == made.record


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"program"', '"pr0gram"'),
        ("0.97", "0.98"),
        ("agent|needs", "agent|hates"),
        ('"scope": "main"', '"scope": "all"'),
        ('"k3f9"', '"k3f8"'),
        ('"aliases": []', '"aliases": ["x"]'),
        ("2026-02-09T12:00:00Z", "2026-02-09T13:00:00Z"),
        ('"solves"', '"eats"'),
        ('"MergeMap"', '"Timestamp"'),
        ('"proof"', '"prof"'),
    ],
)
def test_a_changed_text_is_refused(old: str, new: str) -> None:
    text = compiler.compile(CompilerInput(TUPLES, MAIN)).graph_text
    assert old in text
    with pytest.raises(GraphError) as caught:
        decompile(parse(text.replace(old, new, 1)))
    assert caught.value.cure


@given(
    st.lists(
        st.builds(
            SemanticTuple,
            TRICKY,
            TRICKY,
            TRICKY,
            SURE,
            st.booleans(),
            st.lists(TRICKY, max_size=2).map(tuple),
        ),
        max_size=3,
    ),
    st.builds(
        ContextMeta,
        TIMES,
        TRICKY,
        TRICKY,
        TRICKY | st.just(""),
        TRICKY | st.just(""),
        st.dictionaries(TRICKY, TRICKY, max_size=2),
    ),
    TRICKY,
)
def test_what_was_compiled_is_read_back(
    tuples: list[SemanticTuple], context: ContextMeta, utterance: str
) -> None:
    source = CompilerInput(tuple(tuples), context, utterance)
    try:
        made = compiler.compile(source)
    except GraphError:
        return
    read = decompile(parse(made.graph_text))
    assert read.record == made.record
    assert (read.utterance, dict(read.metadata)) == (utterance, dict(context.metadata))
    assert compiler.compile(source) == made


def test_a_text_with_a_concept_without_a_label_is_refused() -> None:
    nameless = Concept(concept_hash(""), "", 1.0, NOON, NOON)
    with pytest.raises(GraphError, match="the label of `concept_0` says nothing"):
        decompile(parse(emit(Record((nameless,)))))


@given(st.data())
def test_a_damaged_text_is_refused_or_says_the_same(data: st.DataObject) -> None:
    made = compiler.compile(CompilerInput(TUPLES[:1], MAIN, "said"))
    pieces = re.findall(r'"[^"]*"|[\w.]+|\s+|.', made.graph_text)
    at = data.draw(st.integers(0, len(pieces) - 1))
    pieces[at] = data.draw(st.sampled_from([*pieces, "", "{", "]", "1e999", "\u2028", "null"]))
    try:
        read = decompile(parse("".join(pieces))).record
    except GraphError:
        return
    assert read == made.record


@st.composite
def records(draw: st.DrawFn) -> Record:
    labels = draw(st.lists(TRICKY, min_size=1, max_size=3, unique=True))
    concepts = [
        Concept(
            concept_hash(label),
            label,
            draw(SURE),
            draw(TIMES),
            draw(TIMES),
            tuple(draw(st.lists(TRICKY, max_size=2))),
        )
        for label in labels
    ]
    contexts: dict[Digest, ConceptContext] = {}
    for _ in range(draw(st.integers(1, 3))):
        at, names = draw(TIMES), (draw(TRICKY), draw(TRICKY), draw(TRICKY), draw(TRICKY))
        contexts[context_hash(at, *names)] = ConceptContext(context_hash(at, *names), at, *names)
    relations = []
    for _ in range(draw(st.integers(0, 3))):
        subject, object_ = draw(st.sampled_from(concepts)), draw(st.sampled_from(concepts))
        context, predicate = draw(st.sampled_from(list(contexts.values()))), draw(TRICKY)
        fact = fact_hash(subject.label, predicate, object_.label)
        relations.append(
            Relation(
                fact,
                episode_hash(fact, context.hash),
                context.hash,
                subject.hash,
                predicate,
                object_.hash,
                draw(SURE),
                draw(TIMES),
                draw(st.booleans()),
                tuple(draw(st.lists(TRICKY, max_size=2))),
            )
        )
    return Record(tuple(concepts), tuple(contexts.values()), tuple(relations))


@given(records())
def test_any_record_is_read_back_from_its_text(record: Record) -> None:
    assert decompile(parse(emit(record))).record == record


def test_confidences_are_covered_by_the_hash_of_a_record() -> None:
    sure, unsure = (compiled(SemanticTuple("a", "b", "c", value)) for value in (0.9, 0.8))
    assert record_hash(sure) != record_hash(unsure)
    assert trace_hash(sure) == trace_hash(unsure)
