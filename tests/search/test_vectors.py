"""Vectors by slot, compared one by one and by their codes."""

import numpy as np
import pytest

from agentd.memory.index.search.vectors import Vectors

RANDOM = np.random.default_rng(5)
CENTRES = RANDOM.standard_normal((40, 96)).astype(np.float32)


def clustered(count):
    """Vectors around some centres, as texts about some topics have them."""
    near = CENTRES[RANDOM.integers(0, len(CENTRES), count)]
    return near + 0.9 * RANDOM.standard_normal((count, 96)).astype(np.float32)


def filled(rows, exact):
    """The rows, put in two parts and in any order."""
    vectors = Vectors(rows.shape[1], exact)
    order = RANDOM.permutation(len(rows))
    for part in (order[: len(rows) // 3], order[len(rows) // 3 :]):
        vectors.put(part.tolist(), rows[part])
    return vectors


def test_codes_find_the_nearest_ten():
    rows = clustered(30_000)
    plain, coded = filled(rows, exact=len(rows)), filled(rows, exact=100)
    kept = []
    for query in clustered(40):
        wanted, found = plain.top(query, 10)[0], coded.top(query, 10)[0]
        kept.append(len(set(wanted.tolist()) & set(found.tolist())) / 10)
    assert np.mean(kept) >= 0.99


def test_equal_texts_are_equally_near_wherever_they_are():
    one = clustered(1)
    rows = np.concatenate([np.repeat(one, 997, axis=0), clustered(500)])
    rows = rows[RANDOM.permutation(len(rows))]
    same = set(np.flatnonzero((rows == one).all(axis=1)).tolist())
    vectors = filled(rows, exact=len(rows))
    for query in clustered(20):
        slots, cosines = vectors.top(query, len(rows))
        near = {at: c for at, c in zip(slots.tolist(), cosines.tolist(), strict=True) if at in same}
        assert len(near) == 997
        assert len(set(near.values())) == 1
        first = vectors.top(query, 1)[0].tolist()
        assert same.isdisjoint(first) or same == set(first)


def test_cosines_are_the_same_in_half_precision():
    rows = clustered(500)
    plain, coded = filled(rows, exact=500), filled(rows, exact=100)
    query = clustered(1)[0]
    np.testing.assert_allclose(coded.scores(query), plain.scores(query), atol=1e-3)
    some = np.array([3, 499, 7])
    np.testing.assert_allclose(coded.some(query, some), plain.scores(query)[some], atol=1e-3)


@pytest.mark.parametrize("exact", [10, 1000])
def test_what_is_removed_or_was_never_put_is_not_found(exact):
    vectors = Vectors(96, exact)
    rows = clustered(200)
    vectors.put(range(0, 400, 2), rows)
    vectors.remove([0, 2, 5000])
    slots, _ = vectors.top(rows[0], 400)
    assert set(slots.tolist()) == set(range(4, 400, 2))
    assert len(vectors) == 198
    scores = vectors.scores(rows[0])
    assert scores[0] == scores[1] == -1.0
    assert vectors.some(rows[0], np.array([0, 1, 9999])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("exact", [10, 20_000])
@pytest.mark.parametrize("share", [0.001, 0.6])
def test_only_what_is_allowed_is_found(exact, share):
    rows = clustered(10_000)
    vectors = filled(rows, exact)
    allowed = RANDOM.random(len(rows)) < share
    for query in clustered(5):
        slots, cosines = vectors.top(query, 8, allowed)
        scores = np.where(allowed, vectors.scores(query), -1.0)
        assert slots[0] == int(np.argmax(scores))
        assert allowed[slots].all()
        assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)


def test_slots_past_the_mask_are_not_allowed_and_masks_may_be_longer():
    vectors = Vectors(2, 100)
    vectors.put([0, 1], np.eye(2, dtype=np.float32))
    query = np.ones(2, np.float32)
    assert vectors.top(query, 5, np.array([True]))[0].tolist() == [0]
    assert vectors.top(query, 5, np.ones(9, np.bool_))[0].tolist() == [0, 1]


def test_a_vector_that_is_put_again_replaces_the_old_one():
    for exact in (1, 100):
        vectors = Vectors(2, exact)
        vectors.put([0, 1, 2], np.array([[1, 0], [0, 1], [-1, 0]], np.float32))
        vectors.put([0], np.array([[0, -5]], np.float32))
        slots, cosines = vectors.top(np.array([0, -2], np.float32), 1)
        assert (slots.tolist(), cosines.tolist()) == ([0], [1.0])
        assert len(vectors) == 3


def test_another_dimension_is_refused():
    with pytest.raises(ValueError, match="is not 1 rows of 3"):
        Vectors(3).put([0], np.ones((1, 2), np.float32))


@pytest.mark.parametrize("dimension", [1, 3, 100, 384, 1536])
def test_any_dimension_has_codes(dimension):
    rows = RANDOM.standard_normal((300, dimension)).astype(np.float32)
    vectors = filled(rows, exact=10)
    slots, cosines = vectors.top(rows[17], 1)
    assert 17 in slots.tolist()
    assert cosines[0] == pytest.approx(1.0, abs=1e-3)


def test_vectors_that_are_no_numbers_match_nothing():
    vectors = Vectors(2)
    vectors.put([0, 1], np.array([[np.nan, np.inf], [1, 0]], np.float32))
    assert vectors.top(np.array([1, 0], np.float32), 1)[0].tolist() == [1]


@pytest.mark.parametrize("exact", [1000, 10])
def test_rows_are_what_was_put_at_length_one_and_zeros_where_nothing_was(exact):
    rows = clustered(100)
    vectors = filled(rows, exact)
    vectors.remove([3])
    found = vectors.rows(np.array([5, 3, 99, 200]))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(found[[0, 2]], unit[[5, 99]], atol=1e-4)
    assert not found[[1, 3]].any()
