"""What a picture shows, as text that is read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.errors import GraphError
from agentd.core.graph import Record
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.record import Form, as_text, record_of
from agentd.testing import FakeClock, InMemoryGraph
from agentd.zero import parse
from agentd.zero.compiler import compile as compiled
from agentd.zero.decompiler import decompile
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import WritingLevel, at_level, write
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


def said(source, *tuples, scope="main", days=0):
    context = ContextMeta(NOW - timedelta(days=days), source, scope)
    return compiled(CompilerInput(tuples, context)).record


SAID = (
    said(
        "facts",
        SemanticTuple(
            "user", "sister name", "Klara", 0.9, refs=("f1",), object_aliases=("my: sister",)
        ),
        SemanticTuple("klara", "home", "Bern: old, town", 0.8),
    ),
    said("chat", SemanticTuple("user", "sister name", "Klara", 0.7), scope="group:a", days=1),
    said("chat", SemanticTuple("user", "sister name", "Klara", 0.4, denied=True), days=2),
)
FAR = said("facts", SemanticTuple("zeppelin", "flies over", "ulm"))


@pytest.fixture
async def store():
    store = InMemoryGraph()
    await store.insert([*SAID, FAR])
    return store


async def pictured(store, name="user", **options):
    return await Recollection(store, FakeClock(NOW)).picture([name], **options)


async def test_both_texts_say_the_same_record_and_it_is_that_of_the_arrows(store):
    edges = (await pictured(store)).edges
    record = await record_of(store, edges)
    assert read(await as_text(store, edges, Form.COMPACT)) == record
    assert decompile(parse(await as_text(store, edges, Form.ZERO))).record == record
    wanted = {one.episode: one for each in SAID for one in each.relations}
    assert {one.episode: one for one in record.relations} == wanted
    assert {one.label for one in record.concepts} == {"user", "klara", "bern:-old,-town"}
    assert {(one.source, one.scope) for one in record.contexts} == {
        ("facts", "main"), ("chat", "main"), ("chat", "group:a")
    }  # fmt: skip
    assert any(one.denied for one in record.relations)
    assert ("my:-sister",) in {one.aliases for one in record.concepts}


async def test_what_the_picture_leaves_out_is_not_in_the_text(store):
    edges = (await pictured(store, depth=1)).edges
    record = read(await as_text(store, edges, Form.COMPACT))
    assert {one.label for one in record.concepts} == {"user", "klara"}


async def test_every_form_is_the_one_of_its_name(store):
    edges = (await pictured(store)).edges
    record = await record_of(store, edges)
    said = {form: await as_text(store, edges, form) for form in Form}
    assert said[Form.L2] == said[Form.COMPACT] == write(record)
    assert said[Form.L1] == at_level(record, WritingLevel.STRUCTURE)
    assert said[Form.L0] == at_level(record, WritingLevel.SKELETON)
    sizes = [len(said[form]) for form in (Form.L0, Form.L1, Form.L2, Form.ZERO)]
    assert sizes == sorted(sizes)


async def test_lines_come_the_surest_first_and_those_for_prompts_by_subject(store):
    await store.insert([said("facts", SemanticTuple("user", "likes", "tea"))])
    edges = (await pictured(store)).edges
    prompt = await as_text(store, edges, Form.PROMPT)
    assert prompt.startswith("- user likes tea; sister_name klara (0.")
    assert prompt.endswith("\n- klara home bern:-old,-town (0.80)\n")


async def test_a_name_that_is_not_known_gives_a_record_with_nothing_in_it(store):
    edges = (await pictured(store, "nobody")).edges
    assert read(await as_text(store, edges, Form.COMPACT)) == Record()
    assert decompile(parse(await as_text(store, edges, Form.ZERO))).record == Record()
    assert await as_text(store, edges, Form.PROMPT) == ""


class Losing(InMemoryGraph):
    """Its concepts are erased between two questions."""

    async def concepts(self, hashes):
        return {}


@pytest.mark.parametrize("form", [form for form in Form if form is not Form.PICTURE])
async def test_what_was_erased_meanwhile_is_an_error_and_not_half_a_record(store, form):
    losing = Losing()
    await losing.insert(SAID)
    with pytest.raises(GraphError, match=r"not there|erased"):
        await as_text(losing, (await pictured(store)).edges, form)
