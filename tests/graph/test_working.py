from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.core.turn import MAIN, SessionKey
from agentd.memory.graph.service import CAPACITY, WorkingMemory
from agentd.zero import compiler
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

CHAT = SessionKey("chat:a")
META = ContextMeta(datetime(2026, 11, 22, tzinfo=UTC), "chat", "main")
_TUPLES = tuple(SemanticTuple("agent", "knows", f"thing {n}") for n in range(25))
EPISODES = compiler.compile(CompilerInput(_TUPLES, META)).record.relations


def test_the_last_twenty_stay_and_the_oldest_goes_first():
    memory = WorkingMemory()
    memory.add(MAIN, EPISODES)
    assert memory.peek(MAIN) == EPISODES[5:]
    assert len(memory.peek(MAIN, 99)) == CAPACITY == 20


def test_peeking_gives_the_last_and_changes_nothing():
    memory = WorkingMemory()
    memory.add(MAIN, EPISODES[:3])
    for _ in range(2):
        assert memory.peek(MAIN, 2) == EPISODES[1:3]
        assert memory.peek(MAIN, 0) == ()
        assert memory.peek(MAIN, 9) == EPISODES[:3]
    with pytest.raises(ValueError, match="-1"):
        memory.peek(MAIN, -1)


def test_sessions_are_apart_and_those_used_last_are_remembered():
    memory = WorkingMemory(sessions=2)
    memory.add(MAIN, EPISODES[:1])
    memory.add(CHAT, EPISODES[1:2])
    assert memory.peek(MAIN) == EPISODES[:1]
    memory.add(MAIN, EPISODES[2:3])
    memory.add(SessionKey("chat:b"), [])
    assert memory.peek(CHAT) == ()
    assert len(memory.peek(MAIN)) == 2
    memory.drop(MAIN)
    memory.drop(MAIN)
    assert memory.peek(MAIN) == ()


def test_what_comes_again_is_the_newest_and_stands_once():
    memory = WorkingMemory(capacity=3)
    memory.add(MAIN, [*EPISODES[:3], EPISODES[0], EPISODES[3]])
    assert memory.peek(MAIN) == (EPISODES[2], EPISODES[0], EPISODES[3])


@pytest.mark.parametrize("capacity", [0, -3])
def test_it_holds_something(capacity):
    with pytest.raises(ValueError, match="at least one"):
        WorkingMemory(capacity)
