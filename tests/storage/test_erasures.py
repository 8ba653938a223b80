"""What is being erased is kept until it is done, and then goes with every byte."""

from __future__ import annotations

import json

import pytest

from agentd.core.erasure import Erasure, PlacedWords, UntracedFact
from agentd.storage.erasures import SqliteErasures

ERASURE = Erasure(
    ("The user's hamster is called Quastel.",), ids=("k3f9",), sought=(UntracedFact("k3f9", "x"),)
)


@pytest.fixture
def erasures(state_db):
    return SqliteErasures(state_db)


async def test_what_is_begun_is_open_until_it_ends_and_leaves_no_byte(erasures, state_db):
    number = await erasures.begin(ERASURE)
    assert await erasures.begin(ERASURE) == number, "the same is not kept twice"
    more = Erasure(ERASURE.spans, (PlacedWords("alerts:1", "Quastel"),))
    await erasures.update(number, more)
    other = await erasures.begin(Erasure(sentences=("tea",)))
    assert await erasures.open() == {number: more, other: Erasure(sentences=("tea",))}
    folder = state_db.path.parent
    assert any(b"Quastel" in file.read_bytes() for file in folder.iterdir())
    await erasures.end([number])
    assert list(await erasures.open()) == [other]
    assert not any(b"Quastel" in file.read_bytes() for file in folder.iterdir())


async def test_what_an_older_agentd_began_goes_on_by_its_sentences(erasures, state_db):
    old = json.dumps({"phrases": ["My bank is in Linz."], "values": [["Linz", []]]})
    await state_db.execute("INSERT INTO fact_erasures (needles) VALUES (?)", (old,))
    [erasure] = (await erasures.open()).values()
    assert erasure == Erasure(sentences=("My bank is in Linz.",))
