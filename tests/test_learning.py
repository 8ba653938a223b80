"""A short talk with a real daemon: what it learns of it, and what it must not."""

from __future__ import annotations

import pytest

from benchmarks.learning import MODES, explain
from benchmarks.learning_talk.evaluation import evaluate
from benchmarks.learning_talk.script import script

_FACTS = 0.98  # of what was told is found when it is asked for


@pytest.mark.torture
@pytest.mark.parametrize("mode", MODES)
async def test_what_is_told_is_known_and_nothing_else(mode: str) -> None:
    talk = script(conversations=6, plants=30, changes=6, forgets=4, noises=24)
    found = await evaluate(talk, is_scripted=MODES[mode])
    wrong = found.twice + found.stale + found.stale_hits + found.kept + found.lured
    wrong += found.not_taken_back
    assert wrong == []
    assert found.share(is_unseen=False) >= _FACTS, list(explain(found))
    assert found.facts >= len(talk.plants) - len([p for p in talk.plants if p.is_unseen])
