"""A thorough look for garbage comes once in many turns, and gives back what was kept for new
objects.
"""

from __future__ import annotations

import gc
import sys

from agentd.app.garbage_collection import PeriodicCollection
from agentd.core.turn import MAIN

LENGTH = 19  # of tuples that hardly anybody makes
KEPT = 1_500


def test_one_turn_in_so_many_is_followed_by_a_thorough_look():
    looks: list[int] = []

    def count(phase: str, told: dict[str, int]) -> None:
        if phase == "start" and told["generation"] == 2:
            looks.append(told["generation"])

    collection = PeriodicCollection(every=3)
    gc.callbacks.append(count)
    try:
        for _ in range(8):
            collection.count_turn(MAIN)
    finally:
        gc.callbacks.remove(count)
    assert len(looks) == 2


def test_a_look_gives_back_what_the_interpreter_keeps_for_new_tuples():
    collection = PeriodicCollection(every=1)
    collection.count_turn(MAIN)
    made = [tuple(iter(range(LENGTH))) for _ in range(KEPT)]
    del made
    before = sys.getallocatedblocks()
    collection.count_turn(MAIN)
    assert before - sys.getallocatedblocks() > KEPT // 2
