"""A model that sends what is no text, no id and no count costs no session anything."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from agentd.storage.proofs import Seals, digest_of
from tests.e2e.harness import Home, Refused


async def test_half_a_surrogate_pair_in_an_answer_leaves_the_session_alive(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("half words", "m1") == "\ufffdwords\ufffd"
    for number in range(6):  # as many as opened the breaker of all sessions
        assert await client.say(f"say answer {number}", f"n{number}") == f"answer {number}"
    assert "\ufffdwords\ufffd" in json.dumps(home.requests()[-1]["messages"], ensure_ascii=False)
    status = await client.call("_agentd/status")
    assert status["provider"]["breaker"]["failures"] == 0
    await daemon.stop()
    client = await (await home.start()).connect()
    assert await client.say("say after the restart", "m2") == "after the restart"


async def test_a_call_with_half_a_surrogate_pair_is_not_run_but_answered(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("do half milk & write bread; say done", "m1") == "done"
    assert "bread" in home.notes()
    assert "milk" not in home.notes()
    half, whole = home.requests()[-1]["messages"][-1]["content"]
    assert half["is_error"]
    assert "surrogate" in json.dumps(half["content"])
    assert not whole.get("is_error")
    assert await client.say("say alive", "m2") == "alive"
    await daemon.stop()


async def test_an_id_that_the_service_would_refuse_is_stored_as_one_of_ours(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("do slash butter; say done", "m1") == "done"
    assert "butter" in home.notes()
    assert "toolu 1/" not in json.dumps(await client.export())
    await daemon.stop()


@pytest.mark.parametrize("count", [-1, 10**15, 2**63 - 1])
async def test_a_count_of_tokens_that_cannot_be_costs_no_answer(home: Home, count: int) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say(f"count {count}", "m1") == "counted"
    assert await client.say(f"count {count}", "m2") == "counted"
    assert await client.say("say alive", "m3") == "alive"
    await daemon.stop()


async def test_a_number_that_no_column_holds_is_the_services_fault(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    with pytest.raises(Refused) as refused:
        await client.say(f"count {10**25}", "m1")
    assert refused.value.code == "provider_bad_stream"
    assert await client.say("say alive", "m2") == "alive"
    await daemon.stop()


async def test_a_session_whose_stored_words_cannot_be_sent_goes_on(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("say oddwords", "m1") == "oddwords"
    assert await client.say("do write oddbread; say done", "m2") == "done"
    await daemon.stop()
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
        halves = "replace(replace(blocks, 'oddwords', '\\ud800'), 'oddbread', '\\udfff')"
        assert db.execute(f"UPDATE rows SET blocks = {halves}").rowcount > 4
        # As if they were stored so.
        Seals((home.root / "state" / "rows.key").read_bytes()).attach(db)
        db.execute(f"UPDATE rows SET digest = {digest_of()}")
    daemon = await home.start()
    client = await daemon.connect()
    for number in range(6):
        assert await client.say(f"say answer {number}", f"n{number}") == f"answer {number}"
    assert "\ufffd" in json.dumps(home.requests()[-1]["messages"], ensure_ascii=False)
    status = await client.call("_agentd/status")
    assert status["provider"]["breaker"]["failures"] == 0
    await daemon.stop()
