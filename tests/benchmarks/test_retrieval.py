"""A searcher that a benchmark fills itself ranks as that of a daemon: else its figures are
nobody's.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from msgspec.structs import replace

from agentd.core.search import Chunk, Source, StoredChunk
from agentd.memory.index.ranking import kinds
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.in_memory import Mirror
from agentd.memory.index.search.patient_embedder import to_float16
from benchmarks.retrieval import DEFAULT, searcher_of

OPTIONS = replace(DEFAULT, today=date(2026, 11, 20), join=False)
CHUNKS = [
    Chunk(f"memory/2026-{month:02}-01.md", 1, 1, said, Source.NOTES, "main", date(2026, month, 1))
    for month, said in enumerate(("Ann rows.", "Ann has a boat.", "The kettle leaks."), 1)
]
MODELS = sorted(kinds.read_kinds(kinds.FILE))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("model", [*MODELS, "one that nothing is known of"])
def test_a_searcher_without_a_daemon_ranks_as_one_with_it(model: str, sign: float) -> None:
    """Also where a question asks how something stands, and where it does not (`sign`)."""
    known = kinds.kinds_of(model)
    question = np.ones(8, np.float32) if known is None else sign * known.state[:-1]
    question /= np.linalg.norm(question)
    aside = np.zeros_like(question)
    aside[:2] = question[1], -question[0]
    aside /= np.linalg.norm(aside)
    vectors = np.stack([question, question + 0.8 * aside, aside])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    mirror = Mirror()
    entries = map(entry, CHUNKS)
    mirror.add([StoredChunk(n, e.chunk, e.terms, e.traits) for n, e in enumerate(entries, 1)])
    stored = to_float16([row.tobytes() for row in vectors])
    mirror.put_vectors(model, list(enumerate(stored, 1)))
    told = mirror.search(["Ann"], [question.tobytes()], model, OPTIONS)
    alone = searcher_of(CHUNKS, vectors, model).search("Ann", question, OPTIONS)
    assert [(hit.slots[0] + 1,) for hit in alone] == [hit.ids for hit in told.hits]
    assert alone.confidence == pytest.approx(told.confidence, abs=0.01)
