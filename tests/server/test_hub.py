"""The hub: numbers, backlog and holding back."""

import asyncio
import json
from datetime import UTC, datetime

from agentd.core.event import (
    AnswerDelayed,
    AnswerWaits,
    FactsChanged,
    NoticeGiven,
    TextChunk,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
)
from agentd.core.turn import StopReason, Turn
from agentd.interfaces.acp.hub import Hub


class Peer:
    """A client without a socket."""

    def __init__(self):
        self.params = []
        self.has_room = asyncio.Event()
        self.has_room.set()

    def send(self, frame):
        self.params.append(json.loads(frame)["params"])

    async def wait_room(self):
        await self.has_room.wait()

    @property
    def numbers(self):
        return [p["_meta"]["agentd/seq"] for p in self.params]

    @property
    def words(self):
        return [p["update"]["content"]["text"] for p in self.params if "content" in p["update"]]


def turn(hub, *words, end=True):
    hub.emit(TurnStarted("main", "m1", "question"))
    for word in words:
        hub.emit(TextChunk("main", word))
    if end:
        hub.emit(TurnEnded("main", Turn("main", "m1")))


def test_nobody_needs_to_watch():
    hub = Hub()
    assert (hub.seq("main"), hub.watchers("main"), hub.author("main")) == (0, (), None)
    turn(hub, "a")
    assert (hub.seq("main"), hub.running("main")) == (3, "")


def test_of_a_session_that_nobody_watches_the_number_alone_is_kept():
    hub = Hub()
    for number in range(50):
        hub.emit(TurnStarted(f"chat:{number}", "m1", "question"))
        hub.emit(TurnEnded(f"chat:{number}", Turn(f"chat:{number}", "m1")))
    assert not hub._channels
    assert hub.seq("chat:7") == 2
    hub.emit(TurnStarted("chat:7", "m2", "question"))
    assert hub.seq("chat:7") == 3


async def test_numbers_go_on_without_gaps_and_are_the_sessions_own():
    hub, peer = Hub(), Peer()
    await hub.attach("main", peer)
    turn(hub, "a", "b")
    hub.emit(NoticeGiven("chat:other", "x", "y"))
    turn(hub, "c")
    assert peer.numbers == [1, 2, 3, 4, 5, 6, 7]
    assert hub.seq("chat:other") == 1


async def test_who_comes_in_the_middle_sees_the_turn_from_its_start_in_one_piece():
    hub, peer = Hub(), Peer()
    turn(hub, "a", "b", end=False)
    await hub.attach("main", peer)
    hub.emit(TextChunk("main", "c"))
    assert peer.words == ["question", "ab", "c"]
    assert peer.numbers == [1, 3, 4]
    assert {p["_meta"]["agentd/messageId"] for p in peer.params} == {"m1"}


async def test_who_comes_after_the_end_sees_nothing_of_it():
    hub, peer = Hub(), Peer()
    turn(hub, "a")
    await hub.attach("main", peer)
    assert peer.params == []


async def test_a_delay_is_shown_to_those_who_watch_and_not_to_who_comes_later():
    hub, early, late = Hub(), Peer(), Peer()
    await hub.attach("main", early)
    turn(hub, end=False)
    hub.emit(AnswerDelayed("main", "overloaded", "The service is overloaded.", 19.96))
    await hub.attach("main", late)
    told, worded = early.params[-2:]
    retry = {
        "reason": "overloaded",
        "text": "The service is overloaded.",
        "seconds": 20.0,
        "state": "retrying",
    }
    assert told["update"] == {
        "sessionUpdate": "session_info_update",
        "_meta": {"agentd/retry": retry},
    }
    assert told["_meta"] == {"agentd/seq": 2, "agentd/messageId": "m1"}
    words = "The service is overloaded. The next try comes in 20 s."
    assert worded["update"]["content"]["text"] == words
    assert worded["update"]["_meta"] == {"agentd/notice": "retry"}
    assert late.words == ["question"]
    assert late.numbers == [1]


async def test_a_short_delay_needs_no_words():
    hub, peer = Hub(), Peer()
    await hub.attach("main", peer)
    turn(hub, end=False)
    hub.emit(AnswerDelayed("main", "overloaded", "The service is overloaded.", 0.9))
    assert peer.words == ["question"]


def waits(seconds: float, *, is_new: bool) -> AnswerWaits:
    until = datetime(2026, 11, 21, 18, tzinfo=UTC)
    return AnswerWaits("main", "provider_overloaded", "It waits.", seconds, until, is_new)


async def test_that_a_message_waits_is_told_in_words_once_to_each_who_watches():
    hub, early, late = Hub(), Peer(), Peer()
    await hub.attach("main", early)
    turn(hub, end=False)
    hub.emit(waits(30, is_new=True))
    hub.emit(waits(60, is_new=False))
    await hub.attach("main", late)
    assert early.words == late.words == ["question", "It waits."]
    told = [p["update"].get("_meta", {}) for p in early.params]
    states = [meta["agentd/retry"] for meta in told if "agentd/retry" in meta]
    assert [(s["state"], s["seconds"]) for s in states] == [("waiting", 30), ("waiting", 60)]
    assert states[0]["until"] == "2026-11-21T18:00:00+00:00"


async def test_the_end_of_a_message_in_the_queue_hides_nothing_of_the_one_that_runs():
    hub, late = Hub(), Peer()
    turn(hub, "a", end=False)
    hub.emit(TurnEnded("main", Turn("main", "m2", stop_reason=StopReason.CANCELLED)))
    assert hub.running("main") == "m1"
    await hub.attach("main", late)
    assert late.words == ["question", "a"]


async def test_what_was_learnt_is_shown_to_all_who_watch_and_not_again_beside_its_row():
    hub, author, other, late = Hub(), Peer(), Peer(), Peer()
    for peer in (author, other):
        await hub.attach("main", peer)
    hub.remember_author("main", "m1", author)
    turn(hub, end=False)
    change = {"op": "add", "id": "k3f9", "text": "The user likes tea.", "old": []}
    hub.emit(FactsChanged("main", "remembered: The user likes tea.", (change,)))
    hub.emit(FactsChanged("chat:other", "elsewhere", ()))
    await hub.attach("main", late)
    told = author.params[-1]
    assert told == other.params[-1]
    assert told["update"] == {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "remembered: The user likes tea."},
        "_meta": {"agentd/notice": "facts", "agentd/facts": [change]},
    }
    assert told["_meta"]["agentd/seq"] == 2
    assert late.words == ["question"]


async def test_the_author_is_not_shown_his_own_words():
    hub, author, other = Hub(), Peer(), Peer()
    for peer in (other, author):
        await hub.attach("main", peer)
    hub.remember_author("main", "m1", author)
    turn(hub, "a", end=False)
    assert (author.words, other.words) == (["a"], ["question", "a"])
    assert hub.watchers("main") == (author, other)


def test_what_is_held_back_waits_for_its_turn():
    hub, peer = Hub(), Peer()
    held = hub.hold_back("main", peer)
    hub.emit(NoticeGiven("main", "first", "t"))
    assert (len(held), peer.params) == (1, [])
    peer.send(held.popleft())
    hub.stop_holding_back("main", peer)
    hub.emit(NoticeGiven("main", "second", "t"))
    assert peer.words == ["first", "second"]


async def test_an_event_that_is_no_json_harms_nobody():
    hub, early, late = Hub(), Peer(), Peer()
    await hub.attach("main", early)
    turn(hub, end=False)
    hub.emit(ToolCallStarted("main", "c", "t", "t", "read", {"a": float("nan")}))
    hub.emit(NoticeGiven("main", "fine", "t"))
    await hub.attach("main", late)
    assert early.words == late.words == ["question", "fine"]


async def test_a_long_text_comes_in_chunks_that_join_to_it():
    hub, peer = Hub(), Peer()
    await hub.attach("main", peer)
    text = "äöü" * 200_000
    hub.emit(TextChunk("main", text))
    assert len(peer.words) > 1
    assert "".join(peer.words) == text


async def test_a_turn_waits_for_those_who_watch_it_and_for_nobody_else():
    hub, peer, other = Hub(), Peer(), Peer()
    await hub.attach("main", peer)
    await hub.attach("chat:other", other)
    other.has_room.clear()
    await hub.wait_room("main")
    peer.has_room.clear()
    waiting = asyncio.create_task(hub.wait_room("main"))
    await asyncio.sleep(0)
    assert not waiting.done()
    peer.has_room.set()
    await waiting


async def test_who_comes_in_the_middle_of_a_long_answer_is_shown_it_as_fast_as_he_reads():
    hub, peer = Hub(), Peer()
    turn(hub, "a" * 300_000, end=False)
    peer.has_room.clear()
    attaching = asyncio.create_task(hub.attach("main", peer))
    await asyncio.sleep(0)
    assert peer.words == []
    hub.emit(TextChunk("main", "b"))
    peer.has_room.set()
    await attaching
    assert "".join(peer.words) == "question" + "a" * 300_000 + "b"
    assert peer.numbers == sorted(peer.numbers)
