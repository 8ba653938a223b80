"""Conversations with a real daemon, whose model answers as a careful reader would: what is known
then.
"""

from __future__ import annotations

from random import Random

import pytest

from benchmarks import learning
from benchmarks.conversations.everyday import everyday
from benchmarks.conversations.faults import Fallible, beyond, take_back
from benchmarks.conversations.player import perform, play, staged
from benchmarks.conversations.reading import others, own, written
from benchmarks.conversations.scoring import score

_SHORT = ("night-nurse", "tokyo")  # a few sessions that have something of everything
_SEED = 11  # with which some of the mistakes change facts


@pytest.mark.parametrize("name", _SHORT)
async def test_what_a_conversation_says_is_known_and_nothing_else(name: str) -> None:
    conversation = next(one for one in own() if one.name == name)
    result = score([await play(conversation)])
    assert result.wrong == []
    assert (result.found, result.updated) == (result.facts, result.updates)
    assert result.proposed == 0


async def test_answers_of_one_word_in_any_script_reach_the_model_and_are_kept() -> None:
    conversation = written("short_answers")
    played = await play(conversation)
    asked = "\n".join(played.learnt)
    for turn in conversation.turns():
        assert f"] {turn.user}\n" in asked
    assert score([played]).wrong == []


async def test_a_wrong_item_harms_nothing_but_what_it_is_about_and_can_be_undone() -> None:
    conversation = everyday()
    model = Fallible(Random(_SEED))
    async with staged(conversation, model.spoil) as stage:
        played = await perform(stage, conversation)
        undone = await take_back(stage, played, model.mistakes)
    assert beyond(played, model.mistakes) == []
    # How many messages are read at once, and so what the model errs in, depends on the machine's
    # speed. A change on which a later one stands cannot be taken back alone, and is refused.
    assert undone.restored + undone.built_upon == undone.made
    assert len(undone.wrong) == undone.built_upon
    assert undone.restored > 1


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", learning.MEASURES)
async def test_every_figure_of_learning_reaches_its_goal(name: str) -> None:
    if name == "others" and not others():
        pytest.skip("the conversations by others are not beside this checkout")
    rows, wrong = await learning.MEASURES[name]()
    missed = [line for row in rows if "MISSED" in (line := row.as_markdown())]
    assert not missed, "\n".join((*missed, *wrong))
