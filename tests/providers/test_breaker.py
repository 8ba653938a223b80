"""The circuit breaker on a clock that only moves when told."""

import pytest

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import user
from agentd.core.prompt import AnswerCompleted, Prompt
from agentd.providers.faults import failure
from agentd.providers.resilience import CircuitBreaker
from agentd.testing import FakeClock, ScriptedProvider

HELLO = Prompt((), (user("Hello"),))


class Bench:
    def __init__(self, *replies):
        self.clock = FakeClock()
        self.inner = ScriptedProvider(*replies)
        self.breaker = CircuitBreaker(self.inner, self.clock)

    async def ask(self):
        """The answer's text, or the kind of the error."""
        try:
            events = [event async for event in self.breaker.stream(HELLO)]
        except ProviderError as error:
            return error.kind
        assert isinstance(events[-1], AnswerCompleted)
        return events[-1].message.text

    async def fail(self, times, kind="server_error"):
        self.inner.say(*(failure(kind) for _ in range(times)))
        return [await self.ask() for _ in range(times)]

    @property
    def calls(self):
        return len(self.inner.prompts)


@pytest.mark.parametrize("kind", ["server_error", "auth", "rate_limited", "connect", "stream_cut"])
async def test_five_failures_in_a_row_open_it(kind):
    bench = Bench()
    await bench.fail(4, kind)
    assert not bench.breaker.is_open()
    assert bench.breaker.problems() == ()
    await bench.fail(1, kind)
    assert bench.breaker.is_open()
    assert await bench.ask() == "breaker_open"
    assert bench.calls == 5


async def test_an_answer_in_between_starts_the_count_again():
    bench = Bench()
    await bench.fail(4)
    assert await bench.ask() == "ok"
    await bench.fail(4)
    assert not bench.breaker.is_open()


async def test_an_answer_counts_though_its_reader_leaves_with_it():
    bench = Bench()
    for _ in range(3):
        await bench.fail(4)
        events = bench.breaker.stream(HELLO)
        async for event in events:
            if isinstance(event, AnswerCompleted):
                break
        await events.aclose()
    assert not bench.breaker.is_open()


@pytest.mark.parametrize("kind", ["bad_request", "bad_tool_json", "empty_answer", "unknown_stop"])
async def test_failures_that_are_not_the_services_do_not_count(kind):
    bench = Bench()
    await bench.fail(20, kind)
    assert not bench.breaker.is_open()


async def test_an_overflow_does_not_count():
    bench = Bench(*(ContextOverflow("full") for _ in range(20)))
    for _ in range(20):
        await bench.ask()
    assert not bench.breaker.is_open()


async def test_a_refusal_says_when_the_next_try_comes_and_what_was_wrong():
    bench = Bench()
    await bench.fail(5, "overloaded")
    await bench.clock.advance(10)
    with pytest.raises(ProviderError) as caught:
        await anext(bench.breaker.stream(HELLO))
    assert (caught.value.retry_after, caught.value.retryable) == (20, False)
    assert "in 20s" in caught.value.message
    assert "overloaded" in caught.value.message
    await bench.clock.advance(20)
    await bench.fail(1)
    with pytest.raises(ProviderError, match="the next try comes in 1m;"):
        await anext(bench.breaker.stream(HELLO))


async def test_after_thirty_seconds_one_answer_closes_it():
    bench = Bench()
    await bench.fail(5)
    await bench.clock.advance(29)
    assert await bench.ask() == "breaker_open"
    await bench.clock.advance(1)
    assert not bench.breaker.is_open()
    assert bench.breaker.status()["state"] == "half_open"
    assert await bench.ask() == "ok"
    assert bench.breaker.status() == {
        "state": "closed",
        "failures": 0,
        "retry_in_s": 0.0,
        "cause": "",
    }


async def test_failed_probes_double_the_pause_up_to_ten_minutes():
    bench = Bench()
    await bench.fail(5)
    for pause in (30, 60, 120, 240, 480, 600, 600):
        assert bench.breaker.status()["retry_in_s"] == pause
        await bench.clock.advance(pause)
        assert await bench.fail(1) == ["server_error"]


async def test_a_probe_that_shows_the_service_works_closes_it():
    bench = Bench()
    await bench.fail(5)
    await bench.clock.advance(30)
    await bench.fail(1, "bad_request")
    assert bench.breaker.status()["state"] == "closed"


async def test_one_probe_at_a_time_and_an_abandoned_one_says_nothing():
    bench = Bench()
    await bench.fail(5)
    await bench.clock.advance(30)
    probe = bench.breaker.stream(HELLO)
    await anext(probe)
    assert bench.breaker.is_open()
    assert await bench.ask() == "breaker_open"
    await probe.aclose()
    assert bench.breaker.status()["state"] == "half_open"
    assert await bench.ask() == "ok"


async def test_the_problem_names_the_cause_and_its_cure():
    bench = Bench()
    await bench.fail(5, "auth")
    (problem,) = bench.breaker.problems()
    assert problem.code == "breaker_open"
    assert "key" in problem.text
    assert "key" in problem.cure
    await bench.clock.advance(30)
    await bench.ask()
    assert bench.breaker.problems() == ()
