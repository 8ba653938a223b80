"""The page of facts is found fact by fact, without its comments."""

from __future__ import annotations

from datetime import UTC, date, datetime

from agentd.core.fact import Category, Fact, FactSource, FactStatus, Triple
from agentd.memory.facts.page import parse
from agentd.memory.index.chunking.fact_lines import EARLIER
from agentd.memory.index.chunks import chunks_of_note

THEN = datetime(2026, 3, 2, 5, tzinfo=UTC)
NOW = datetime(2026, 11, 22, 5, 11, tzinfo=UTC)


def a_fact(fact_id, text, **fields):
    return Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, THEN, NOW, **fields)


def test_each_fact_is_a_chunk_and_what_is_over_says_so():
    page = parse("# Facts\n\nSome words of mine.\n").edited(
        [
            a_fact("aaaaaaaa", 'Rex --> <!-- "x" &lt;', triple=Triple("user", "dog", "Rex")),
            a_fact("bbbbbbbb", "Tea."),
            a_fact("cccccccc", "Max.", status=FactStatus.SUPERSEDED, valid_to=NOW),
        ],
        buried={"dddddddd": NOW},
    )
    text = page.render() + "- new one\n"
    lines = text.split("\n")
    found = chunks_of_note("memory/facts.md", text, scope="main")
    assert [(c.text, c.date, c.importance) for c in found] == [
        ("Some words of mine.", None, 1.0),
        ('Rex --> <!-- "x" &lt;', date(2026, 3, 2), 1.0),
        ("Tea.", date(2026, 3, 2), 1.0),
        ("Until 2026-11-22: Max.", date(2026, 3, 2), EARLIER),
        ("new one", None, 1.0),
    ]
    assert all(c.start_line == c.end_line for c in found)
    assert all(c.text.split(": ")[-1][:3] in lines[c.start_line - 1] for c in found)
    assert {c.scope for c in found} == {"main"}
