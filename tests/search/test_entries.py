"""A chunk is read once: what is stored about it ranks as if it were read again."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace

from agentd.core.search import Chunk, SearchOptions, Source, StoredChunk
from agentd.memory.index.search.corpus import Corpus
from agentd.memory.index.search.entries import entry, head_size, is_current
from agentd.memory.index.search.in_memory import Mirror
from agentd.memory.index.search.searcher import Searcher
from agentd.memory.index.search.units import embedded_text, head_terms

TEXTS = (
    "Did Anna book the two flights for 3 May?",
    "We met in Lisbon yesterday, three of us.",
    "srv-4711 runs backups at 03:30 since January",
    "東京タワー に行きました。",
    "",
    "Crème brûlée — on the 29th of February 2024",
)


def chunk(line, text):
    day = date(2026, 11, 21) if line % 2 else None
    return Chunk(
        "memory/a.md", line, line, text, Source.NOTES, "main", day, "Anna", "Notes > Trips"
    )


CHUNKS = [chunk(line, text) for line, text in enumerate(TEXTS, 1)]
STORED = [
    StoredChunk(n, one, entry(one).terms, entry(one).traits) for n, one in enumerate(CHUNKS, 1)
]


def columns(corpus):
    return {name: corpus.column(name).tolist() for name in ("tokens", "question", "asks",
            "told", "told_last", "day", "speaker", "importance", "evergreen")}  # fmt: skip


def test_who_speaks_counts_once_though_the_text_of_an_imported_message_says_it_too():
    said = replace(CHUNKS[0], source=Source.SESSIONS, text="the kettle is blue", context="")
    imported = replace(said, text=f"Anna: {said.text}")
    for one in (said, imported):
        assert entry(one).terms.split().count("anna") == 1
    assert embedded_text(imported) == embedded_text(said) == "Anna: the kettle is blue"
    assert entry(imported).digest == entry(said).digest


def test_traits_say_what_the_text_says():
    asked, met, tower, leap = (CHUNKS[at] for at in (0, 1, 3, 5))
    corpus = Corpus()
    for one in (asked, met, tower, leap):
        corpus.add([one], [[]], [entry(one).traits])
    found = columns(corpus)
    assert found["question"] == [1, 0, 0, 0]
    may, leap_day = date(2027, 5, 3).toordinal(), date(2024, 2, 29).toordinal()
    assert found["told"] == found["told_last"] == [may, -1, -1, leap_day]
    assert found["tokens"][1] == 10
    assert head_size(entry(asked).traits) == len(head_terms(asked))


def test_stored_chunks_rank_as_chunks_that_are_read_now():
    loaded, stale, read = Mirror(), Mirror(), Searcher()
    loaded.add(STORED[:2])
    loaded.add(STORED[2:])
    stale.add([replace(one, terms="nonsense", traits=b"\0" * 19) for one in STORED])
    read.add(CHUNKS)
    for query in ("flights in may", "anna lisbon", "srv-4711", "東京", "creme brulee", "lisbom"):
        first = loaded.search([query], None, "", SearchOptions())
        assert first == stale.search([query], None, "", SearchOptions())
        slots = [hit.slots for hit in read.search(query, None, SearchOptions())]
        assert [tuple(n - 1 for n in hit.ids) for hit in first.hits] == slots


def test_traits_of_other_rules_are_not_current():
    assert is_current(STORED[0].traits)
    assert not is_current(b"")
    assert not is_current(b"\0" * len(STORED[0].traits))


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where is the key?", True),
        ("Where is it? And who has the other one?", True),
        ("Ben: how are you?", True),
        ("We moved it to the shed. Did you see?", False),
        ("see https://example.org/?q=1", False),
        ("鍵はどこ？", True),
        ("The key is in the shed.", False),
        ("?", False),
    ],
)
def test_what_says_nothing_but_questions_is_known(text, asks):
    one = replace(CHUNKS[0], text=text, speaker="Ben")
    corpus = Corpus()
    corpus.add([one], [[]], [entry(one).traits])
    assert bool(corpus.column("asks")[0]) is asks
