"""A service over HTTP: batches, tries, limits, and answers that are checked to the last number."""

import asyncio
import json
import math
import struct
from datetime import timedelta

import pytest

from agentd.core.errors import EmbedderFault, StorageError
from agentd.core.secrets import Secret
from agentd.memory.index.embedding.choice import EmbeddingService
from agentd.memory.index.embedding.daily import DailyTokens
from agentd.memory.index.embedding.embedding_settings import ModelSettings
from agentd.memory.index.embedding.openai import OpenAIEmbedder
from agentd.testing import FakeClock


@pytest.fixture
async def asking(service, clock, tmp_path):
    opened = []

    def asking(model: str = "m", tokens: DailyTokens | None = None, spent=None, **settings):
        settings.setdefault("tries", 1)
        embedder = OpenAIEmbedder(
            EmbeddingService("there-m-3", model, 3, Secret("sk-SENTINEL", "test")),
            ModelSettings(base_url=service.url, **settings),
            tokens or DailyTokens(tmp_path / "tokens.json", settings.get("daily_tokens", 0), clock),
            clock,
            chance=lambda: 0.0,
            spent=spent,
        )
        opened.append(embedder)
        return embedder

    yield asking
    for embedder in opened:
        await embedder.aclose()


def reply(status=200, content=None, **headers):
    named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return lambda _: (status, {} if content is None else content, named)


def vectors(*rows, **more):
    return reply(content={"data": [{"embedding": row} for row in rows], **more})


async def fault(embedder, *texts):
    with pytest.raises(EmbedderFault) as caught:
        await embedder.embed(texts or ["a"])
    return caught.value


async def test_vectors_come_in_the_order_of_the_texts_and_with_length_one(asking, service):
    rows = await asking().embed(["a", "bbbb"])
    first, second = (struct.unpack("<3f", row) for row in rows)
    assert first[0] / first[1] == pytest.approx(0.5)
    assert second[0] / second[1] == pytest.approx(2)
    assert math.hypot(*first) == pytest.approx(1)
    assert service.headers[0]["authorization"] == "Bearer sk-SENTINEL"
    assert service.requests == [{"model": "m", "input": ["a", "bbbb"]}]


async def test_blank_texts_are_not_sent(asking, service):
    rows = await asking().embed(["", "a", "  \n"])
    assert rows[0] == rows[2] == bytes(12)
    assert service.requests[0]["input"] == ["a"]


async def test_batches_are_bounded_by_texts_and_by_tokens(asking, service):
    await asking(batch_texts=2, batch_tokens=100).embed(["a", "b", "c", "x" * 300, "y" * 300])
    assert [len(request["input"]) for request in service.requests] == [2, 1, 1, 1]


async def test_any_text_can_be_sent(asking):
    assert len(await asking().embed(["\ud800", "\0", "日本", '"', "x" * 100_000])) == 5


async def test_prefixes_and_a_shorter_dimension_are_asked_for(asking, service):
    embedder = asking("text-embedding-3-small", query_prefix="query: ", dimension=3)
    await embedder.embed(["a"], query=True)
    assert service.requests[0]["input"] == ["query: a"]
    assert service.requests[0]["dimensions"] == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (vectors([1, 2, 3]), "1 vectors for 2 texts"),
        (vectors([1, 2], [1, 2]), "vectors of 2 numbers, not of 3"),
        (vectors([1, 2, 3], [1, 2, "x"]), "holds no vectors"),
        (vectors([1, 2, 3], None), "holds no vectors"),
        (
            reply(content=b'{"data": [{"embedding": [NaN, 1, 1]}, {"embedding": [1, 1, 1]}]}'),
            "not finite",
        ),
        (
            reply(content=b'{"data": [{"embedding": [1e999, 1, 1]}, {"embedding": [1, 1, 1]}]}'),
            "not finite",
        ),
        (
            reply(content={"data": [{"embedding": [1, 1, 1], "index": 1}] * 2}),
            "numbered its vectors wrongly",
        ),
        (reply(content=[]), "holds no vectors"),
        (reply(content=b"<html>"), "holds no vectors"),
        (reply(content=b""), "holds no vectors"),
        (reply(401, {"error": {"message": "bad key"}}), "401: bad key"),
        (reply(404, b"nothing here"), "answered 404."),
        (reply(400, {"error": "too long"}), "400: too long"),
        (reply(302, b"", location="http://127.0.0.1:9/"), "answered 302"),
    ],
)
async def test_an_answer_that_is_none_is_refused_in_words(asking, service, answer, words):
    service.answers = [answer]
    embedder = asking()
    assert words in (await fault(embedder, "a", "b")).message
    assert len(await embedder.embed(["a", "b"])) == 2


async def test_what_may_pass_is_tried_again_after_the_wait_that_was_asked_for(
    asking, service, clock
):
    service.answers = [reply(429, b"", retry_after=7), reply(503), reply(500)]
    async with asyncio.TaskGroup() as group:
        call = group.create_task(asking(tries=4).embed(["a"]))
        for seen, wait in ((1, 7), (2, 1), (3, 2)):
            while len(service.requests) < seen or not clock.sleeping:
                await asyncio.sleep(0.001)
            await clock.advance(wait - 0.5)
            assert len(service.requests) == seen
            await clock.advance(0.6)
    assert len(call.result()) == 1


async def test_a_question_is_not_tried_again_as_another_embedder_answers_it(asking, service):
    service.answers = [reply(503)]
    with pytest.raises(EmbedderFault, match="503"):
        await asking(tries=4).embed(["a"], query=True)
    assert len(service.requests) == 1


async def test_a_wait_over_the_limit_and_a_used_up_account_are_told_at_once(asking, service):
    limit = timedelta(seconds=5)
    service.answers = [reply(429, b"", retry_after=6)]
    assert "429" in (await fault(asking(tries=4, retry_after_limit=limit))).message
    service.answers = [reply(429, {"error": {"code": "insufficient_quota", "message": "pay"}})]
    assert "pay" in (await fault(asking(tries=4))).message
    assert len(service.requests) == 2


async def test_a_service_that_keeps_failing_is_left_alone_for_a_while(asking, service, clock):
    service.answers = [reply(500)] * 6
    embedder = asking()
    for _ in range(5):
        await fault(embedder)
    assert "next try comes in 30s" in (await fault(embedder)).message
    assert len(service.requests) == 5
    await clock.advance(31)
    assert "500" in (await fault(embedder)).message
    assert "next try comes in 1m" in (await fault(embedder)).message
    await clock.advance(61)
    assert len(await embedder.embed(["a"])) == 1


async def test_texts_that_the_service_refuses_do_not_count_against_it(asking, service):
    service.answers = [reply(400)] * 8
    embedder = asking()
    for _ in range(8):
        assert "400" in (await fault(embedder)).message


async def test_silence_ends_and_a_server_that_is_gone_is_told(asking, service):
    async def never():
        await asyncio.Event().wait()

    service.before = never
    assert "in time" in (await fault(asking(timeout=timedelta(seconds=1)))).message
    gone = asking()
    gone._settings = ModelSettings(base_url="http://127.0.0.1:9/v1", tries=1)
    assert "cannot be reached" in (await fault(gone)).message


async def test_no_error_holds_the_key(asking, service):
    service.answers = [reply(401), reply(500)]
    for _ in range(2):
        told = await fault(asking())
        assert "SENTINEL" not in f"{told!r} {told.message} {told.cure}"


async def test_a_day_has_no_more_tokens_than_allowed_not_even_after_a_restart(
    asking, service, clock, tmp_path
):
    def limited():
        return asking(tokens=DailyTokens(tmp_path / "day.json", 60, clock))

    await limited().embed(["x" * 90])  # 31 by estimate, 10 as the service says
    assert json.loads((tmp_path / "day.json").read_text()) == {"2026-11-21": 10}
    assert (tmp_path / "day.json").stat().st_mode & 0o777 == 0o600
    refused = await fault(limited(), "x" * 150)
    assert "limit of 60" in refused.message
    assert "daily_tokens" in refused.cure
    assert len(service.requests) == 1
    clock.jump(timedelta(days=1))
    assert len(await limited().embed(["x" * 150])) == 1


async def test_a_limit_that_cannot_be_kept_is_no_reason_to_spend(asking, service, clock, tmp_path):
    tokens = DailyTokens(tmp_path / "missing" / "day.json", 60, clock)
    assert "cannot be written" in (await fault(asking(tokens=tokens))).message
    assert not service.requests


async def test_a_damaged_count_begins_again(clock: FakeClock, tmp_path):
    (tmp_path / "day.json").write_text('["what"')
    await DailyTokens(tmp_path / "day.json", 5, clock).take(5)
    with pytest.raises(EmbedderFault):
        await DailyTokens(tmp_path / "day.json", 5, clock).take(1)


async def test_what_was_sent_is_booked_as_told_or_else_as_estimated_and_never_below_nothing(
    asking, service
):
    booked = []

    async def spent(model, tokens):
        booked.append((model, tokens))

    told = [{}, {"usage": {"total_tokens": 7}}, {"usage": {"total_tokens": -9}}]
    service.answers = [vectors([1, 0, 0], **more) for more in told]
    for _ in told:
        await asking(spent=spent).embed(["x" * 30])
    assert booked == [("m", 11), ("m", 7), ("m", 11)]
    service.answers = [reply(400)]
    await fault(asking(spent=spent), "a")
    assert len(booked) == 3


async def test_what_cannot_be_booked_is_told(asking):
    async def spent(model, tokens):
        raise StorageError("the disk is gone", cure="plug it in")

    told = await fault(asking(spent=spent), "a")
    assert "cannot be written down: the disk is gone" in told.message
    assert told.cure == "plug it in"


async def test_no_key_is_sent(asking, service):
    key = "ghp_" + "a1B2" * 9
    await asking().embed([f"mine is {key}"])
    await asking().embed([f"where is {key}?"], query=True)
    sent = [text for request in service.requests for text in request["input"]]
    assert sent == ["mine is [secret:github]", "where is [secret:github]?"]
