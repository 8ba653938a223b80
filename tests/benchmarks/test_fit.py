"""Fitting the weights of structured fusion: what it prints is what the table needs."""

from __future__ import annotations

import ast

import numpy as np

from agentd.ranking import weights
from benchmarks.fit import Listed, found, topic

CANDIDATES = 20


def listed(random, *, known: bool, vectors: bool = True) -> Listed:
    """A question whose answer, if there is one, is near and covers it."""
    columns = {"wide_cover": random.uniform(0.0, 0.5, CANDIDATES)}
    if vectors:
        columns["cosine"] = random.uniform(0.0, 0.5, CANDIDATES)
    answers = np.zeros(CANDIDATES)
    if known:
        answers[3] = 1.0
        for column in columns.values():
            column[3] = random.uniform(0.4, 1.0)
    return Listed(columns, answers)


def asked(vectors: bool = True) -> tuple[list[Listed], list[Listed]]:
    random = np.random.default_rng(1)
    known = [listed(random, known=True, vectors=vectors) for _ in range(60)]
    return known, [listed(random, known=False, vectors=vectors) for _ in range(60)]


def test_every_name_of_the_table_of_weights_is_printed():
    lines = [*found(*asked(), "both"), *found(*asked(vectors=False), "keywords")]
    values = {name: ast.literal_eval(value) for name, value in (x.split(" = ") for x in lines)}
    assert {name.split("[")[0] for name in values} == {"STRUCTURED", "CERTAINTY", "TOPIC"}
    assert len(values["TOPIC"]) == len(weights.TOPIC)
    assert len(values['CERTAINTY["keywords"]']) == len(weights.CERTAINTY["keywords"])
    assert all(weight > 0 for weight in values['STRUCTURED["both"]'].values())


def test_what_is_near_and_covered_is_likelier_to_be_spoken_of():
    known, foreign = asked()
    bias, cosine, cover = topic(known, foreign)
    assert bias < 0 < min(cosine, cover)
