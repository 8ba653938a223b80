"""Which of many texts are near each other, told from their vectors. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agentd.ranking.facts import Floats

_BLOCK = 64  # rows that are compared with all at once


def neighbours(
    vectors: Mapping[str, bytes], names: Sequence[str], floor: float, most: int
) -> dict[str, list[tuple[str, float]]]:
    """For each of `names` the others of `vectors` whose cosine is at least `floor`, at most so many,
    the nearest first. Vectors are float32 bytes; those of another length than the first are left out.
    Time grows with names times vectors.
    """
    size = len(next(iter(vectors.values()), b""))
    known = [name for name, vector in vectors.items() if len(vector) == size > 0]
    if len(known) < 2:
        return {}
    joined = b"".join(vectors[name] for name in known)
    rows = _unit(np.frombuffer(joined, "<f4").reshape(len(known), -1))
    places = {name: place for place, name in enumerate(known)}
    wanted = [places[name] for name in names if name in places]
    found: dict[str, list[tuple[str, float]]] = {}
    for start in range(0, len(wanted), _BLOCK):
        block = wanted[start : start + _BLOCK]
        cosines = rows[block] @ rows.T
        cosines[np.arange(len(block)), block] = -1.0
        for at, row in zip(block, cosines, strict=True):
            near = np.flatnonzero(row >= floor)
            if len(near):
                best = near[np.argsort(-row[near], kind="stable")[:most]]
                found[known[at]] = [(known[other], float(row[other])) for other in best]
    return found


def _unit(rows: Floats) -> Floats:
    rows = np.nan_to_num(np.asarray(rows, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return scaled
