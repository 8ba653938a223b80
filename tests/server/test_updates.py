"""Events and rows as updates."""

from __future__ import annotations

from datetime import UTC, datetime

from agentd.core.event import FactsChanged
from agentd.core.message import Text
from agentd.core.transcript import Row, RowRole
from agentd.interfaces.acp.updates import event_updates, replay_updates

SAID = "remembered: The user lives in Fulda. (before: The user lives in Kassel.)"
CHANGE = {
    "op": "replace",
    "id": "k3f9",
    "text": "The user lives in Fulda.",
    "old": ["The user lives in Kassel."],
}


def test_what_was_learnt_is_one_update_with_its_words_and_its_changes():
    [update] = event_updates(FactsChanged("main", SAID, (CHANGE,)))
    assert update == {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": SAID},
        "_meta": {"agentd/notice": "facts", "agentd/facts": [CHANGE]},
    }


def test_its_row_is_shown_again_with_the_same_words_and_without_the_changes():
    at = datetime(2026, 5, 4, tzinfo=UTC)
    row = Row(7, RowRole.NOTICE, (Text(SAID),), at, tag="facts")
    [(seq, update)] = replay_updates([row], {})
    assert seq == 7
    assert update == {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": SAID},
        "_meta": {"agentd/notice": "facts"},
    }
