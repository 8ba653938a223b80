"""BM25 that does not depend on the order of changes, nor on how postings are stored."""

import math
import sys
import tracemalloc
from collections import Counter, defaultdict
from itertools import count, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.memory.index.search.postings import (
    K1,
    LONGEST,
    OFTENEST,
    B,
    Postings,
    best,
    build,
    merge,
    term_numbers,
)

TERMS = st.sampled_from(["alpha", "beta", "gamma", "delta", "omega"])
DOCUMENTS = st.lists(st.lists(TERMS, max_size=8), min_size=1, max_size=12)
QUERY = [("alpha", 1.0), ("omega", 0.7), ("unknown", 1.0)]


def written_out(documents, terms):
    """The formula, term by term."""
    mean = sum(map(len, documents)) / len(documents) or 1.0
    scores = []
    for own in documents:
        score = 0.0
        for term, weight in terms:
            df = sum(term in other for other in documents)
            idf = math.log((len(documents) - df + 0.5) / (df + 0.5) + 1.0)
            count = Counter(own)[term]
            norm = K1 * (1 - B + B * len(own) / mean)
            score += weight * idf * count * (K1 + 1) / (count + norm) if count else 0.0
        scores.append(score)
    return scores


@given(DOCUMENTS)
@settings(max_examples=60)
def test_scores_are_those_of_the_formula(documents):
    postings = Postings()
    postings.add(documents)
    np.testing.assert_allclose(
        postings.scores(QUERY), written_out(documents, QUERY), rtol=1e-5, atol=1e-6
    )


@given(DOCUMENTS, st.data())
@settings(max_examples=60)
def test_scores_do_not_depend_on_the_order_of_changes(documents, data):
    rest = data.draw(DOCUMENTS)
    order = data.draw(st.permutations(range(len(documents) + len(rest))))
    everything = documents + rest
    plain = Postings()
    plain.add(documents)
    changed = Postings()
    slots = {}
    for number in order:
        slots[number] = changed.add([everything[number]])
        if data.draw(st.booleans()):
            changed.scores(QUERY)
        if number >= len(documents) and data.draw(st.booleans()):
            changed.remove([slots[number]])
    changed.remove([slots[number] for number in range(len(documents), len(everything))])
    at = [slots[number] for number in range(len(documents))]
    np.testing.assert_array_equal(changed.scores(QUERY)[at], plain.scores(QUERY))
    assert [changed.frequency(t) for t in ["alpha", "beta", "unknown"]] == [
        plain.frequency(t) for t in ["alpha", "beta", "unknown"]
    ]
    assert len(changed) == len(plain)


def test_a_removed_document_scores_nothing_and_is_not_found():
    postings = Postings()
    postings.add([["alpha"], ["alpha", "beta"], ["beta"]])
    postings.remove([0])
    postings.remove([0])
    assert postings.scores([("alpha", 1.0)])[0] == 0.0
    assert postings.top([("alpha", 1.0)], 5)[0].tolist() == [1]
    assert postings.frequency("alpha") == 1
    assert len(postings) == 2


def test_more_documents_than_a_segment_holds_are_all_found():
    postings = Postings()
    postings.add([["common", f"own{number}"] for number in range(70_000)])
    postings.add([["common", "last"]])
    for number in (0, 65_535, 65_536, 69_999):
        assert postings.top([(f"own{number}", 1.0)], 3)[0].tolist() == [number]
    assert postings.top([("last", 1.0)], 3)[0].tolist() == [70_000]
    assert postings.frequency("common") == 70_001
    postings.remove(range(65_530, 65_540))
    assert postings.frequency("common") == 69_991
    assert not postings.scores([("common", 1.0)])[65_530:65_540].any()


@given(DOCUMENTS, st.data())
@settings(max_examples=40)
def test_impacts_are_what_scores_are_made_of(documents, data):
    postings = Postings()
    for own in documents:
        postings.add([own])
    wanted = np.array(data.draw(st.permutations(range(len(documents)))))
    matrix = postings.impacts(wanted, [term for term, _ in QUERY])
    together = matrix @ np.array([weight for _, weight in QUERY], np.float32)
    np.testing.assert_allclose(together, postings.scores(QUERY)[wanted], rtol=1e-5)


def test_only_what_is_allowed_is_among_the_best():
    postings = Postings()
    postings.add([["alpha"]] * 6)
    allowed = np.array([False, True, False, True, False, False])
    assert postings.top([("alpha", 1.0)], 5, allowed)[0].tolist() == [1, 3]


def test_very_long_documents_and_endless_repetition_are_bounded():
    postings = Postings()
    postings.add([["alpha"] * 100_000, ["alpha"] * (LONGEST + 1), ["beta"] * OFTENEST])
    first, second, _ = postings.scores([("alpha", 1.0)]).tolist()
    assert first == second > 0


def test_an_empty_document_takes_a_slot():
    postings = Postings()
    assert postings.add([[], ["alpha"]]) == 0
    assert postings.add([[]]) == 2
    assert postings.top([("alpha", 1.0)], 5)[0].tolist() == [1]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), max_size=2000),
    st.integers(min_value=0, max_value=9),
)
@settings(max_examples=60)
def test_the_best_are_those_of_a_sorted_list_with_all_ties(values, k):
    scores = np.array(values, np.float32)
    slots, found = best(scores, k, above=0.0)
    ranked = sorted((v for v in values if v > 0), reverse=True)
    least = ranked[k - 1] if 0 < k < len(ranked) else 0.0
    assert sorted(slots.tolist()) == [i for i, v in enumerate(values) if v > 0 and v >= least]
    assert found.tolist() == sorted(found.tolist(), reverse=True)


def test_others_get_the_interpreter_between_any_two_documents_that_are_numbered():
    documents = [[f"{document} {word}" for word in range(50)] for document in range(20)]
    known = defaultdict(count().__next__)
    read = [0]  # terms, at each moment at which another thread may come in

    def trace(frame, event, argument):
        read.append(len(known))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        numbers = term_numbers(documents, known.__getitem__)
    finally:
        sys.settrace(before)

    assert numbers.tolist() == list(range(20 * 50))
    assert max(later - earlier for earlier, later in pairwise([*read, len(known)])) <= 50


def test_two_segments_merged_are_one_of_all_their_documents_and_little_room_is_taken_besides():
    numbers = np.random.default_rng(7).integers(0, 3_000, (4_000, 30)).astype(np.int32)
    lengths = np.full(2_000, 30, np.int32)
    one, other = (
        build(0, numbers[:2_000].ravel(), lengths),
        build(2_000, numbers[2_000:].ravel(), lengths),
    )
    tracemalloc.start()
    try:
        merged = merge(one, other)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = build(0, numbers.ravel(), np.full(4_000, 30, np.int32))
    for own, all_ in zip(merged.arrays().values(), whole.arrays().values(), strict=True):
        np.testing.assert_array_equal(own, all_)
    assert most - held < 1.5 * merged.nbytes
