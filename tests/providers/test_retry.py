"""Retries on a clock that only moves when told."""

import asyncio

import pytest

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import assistant, user
from agentd.core.prompt import (
    AnswerCompleted,
    ModelStop,
    Prompt,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from agentd.core.turn import Usage
from agentd.providers.faults import failure
from agentd.providers.provider_settings import FallbackSettings, ProviderSettings
from agentd.providers.resilience import RetryingProvider
from agentd.testing import FakeClock, ScriptedProvider

HELLO = Prompt((), (user("Hello"),))


def retrying(*replies, clock=None, chance=0.0, **settings):
    inner = ScriptedProvider(*replies)
    wrapped = RetryingProvider(
        inner, ProviderSettings(**settings), clock or FakeClock(), chance=lambda: chance
    )
    return inner, wrapped


async def run(provider, clock, seconds=600):
    """The events of one call, or its error, while time passes."""
    events = []

    async def call():
        try:
            async for event in provider.stream(HELLO):
                events.append(event)  # noqa: PERF401 - those before an error count
        except ProviderError as error:
            events.append(error)

    async with asyncio.TaskGroup() as group:
        group.create_task(call())
        await clock.advance(seconds)
    return events


async def test_a_failure_that_passes_is_not_seen():
    clock = FakeClock()
    inner, provider = retrying(failure("overloaded"), failure("connect"), "ok", clock=clock)
    events = await run(provider, clock)
    assert isinstance(events[-1], AnswerCompleted)
    assert not [e for e in events if isinstance(e, StreamRestarted)]
    assert len(inner.prompts) == 3


async def test_four_tries_are_made_and_the_last_error_is_raised():
    clock = FakeClock()
    inner, provider = retrying(*(failure("server_error") for _ in range(9)), clock=clock)
    error = (await run(provider, clock))[-1]
    assert error.kind == "server_error"
    assert len(inner.prompts) == 4


@pytest.mark.parametrize(
    "kind", ["auth", "billing", "forbidden", "not_found", "bad_request", "too_slow", "breaker_open"]
)
async def test_what_will_not_pass_is_asked_once(kind):
    clock = FakeClock()
    inner, provider = retrying(failure(kind), clock=clock)
    (error,) = await run(provider, clock, 0)
    assert error.kind == kind
    assert len(inner.prompts) == 1


async def test_an_overflow_stays_an_overflow():
    clock = FakeClock()
    _, provider = retrying(ContextOverflow("full"), clock=clock)
    (error,) = await run(provider, clock, 0)
    assert isinstance(error, ContextOverflow)


async def test_a_silent_model_is_asked_just_once_more():
    clock = FakeClock()
    inner, provider = retrying(*(failure("empty_answer") for _ in range(9)), clock=clock)
    error = (await run(provider, clock))[-1]
    assert (error.kind, len(inner.prompts)) == ("empty_answer", 2)


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.5, 1.0, 2.0]), (1.0, [0.25, 0.5, 1.0])])
async def test_waits_double_and_chance_shortens_them(chance, waits):
    clock = FakeClock()
    inner, provider = retrying(
        *(failure("overloaded") for _ in range(4)), clock=clock, chance=chance
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(run(provider, FakeClock(), 0))
        for count, wait in enumerate(waits, start=1):
            await clock.advance(wait - 0.01)
            assert len(inner.prompts) == count
            await clock.advance(0.01)
            assert len(inner.prompts) == count + 1


async def test_the_services_own_wait_is_kept_to_the_second():
    clock = FakeClock()
    inner, provider = retrying(failure("rate_limited", retry_after=60), "ok", clock=clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(run(provider, FakeClock(), 0))
        await clock.advance(59.9)
        assert len(inner.prompts) == 1
        await clock.advance(0.1)
    assert len(inner.prompts) == 2


async def test_each_wait_is_told_before_it_begins_with_its_reason_but_no_details():
    clock = FakeClock()
    overload = failure("overloaded", "HTTP 529, request req_1", retry_after=20)
    inner, provider = retrying(overload, failure("connect"), "ok", clock=clock)
    events = provider.stream(HELLO)
    assert await anext(events) == RetryScheduled("overloaded", "The service is overloaded.", 20)
    assert len(inner.prompts) == 1
    async with asyncio.TaskGroup() as group:
        second = group.create_task(anext(events))
        await clock.advance(20)
    assert second.result() == RetryScheduled("connect", "The service cannot be reached.", 1.0)
    await events.aclose()


async def test_where_no_other_try_comes_none_is_told():
    clock = FakeClock()
    _, provider = retrying(*(failure("overloaded") for _ in range(9)), clock=clock)
    events = await run(provider, clock)
    assert [type(e) for e in events] == [RetryScheduled] * 3 + [ProviderError]


async def test_a_wait_over_the_limit_fails_at_once_and_says_so():
    clock = FakeClock()
    inner, provider = retrying(failure("rate_limited", retry_after=3600), clock=clock)
    (error,) = await run(provider, clock, 0)
    assert (error.kind, error.retryable, error.retry_after) == ("rate_limited", False, 3600)
    assert "3600 s" in error.message
    assert error.cure.startswith("Try again in 1h, or raise [provider] retry_after_limit")
    assert len(inner.prompts) == 1


class Cut:
    """A provider whose first answer breaks off in the middle."""

    name = "cut"
    model = "cut-1"

    def __init__(self):
        self.calls = 0

    async def stream(self, prompt):
        self.calls += 1
        yield TextDelta("Half")
        if self.calls == 1:
            raise failure("stream_cut")
        yield AnswerCompleted(assistant("Half"), ModelStop.END_TURN, Usage(), "cut-1", "cut")


async def test_the_cure_of_a_fallback_names_its_own_table():
    refused = ScriptedProvider(failure("rate_limited", retry_after=3600))
    fallback = FallbackSettings(kind="openai", model="gpt-5-mini")
    clock = FakeClock()
    error = (await run(RetryingProvider(refused, fallback, clock), clock))[-1]
    assert "raise [[provider.fallback]] retry_after_limit" in error.cure


async def test_words_that_were_shown_are_taken_back():
    clock = FakeClock()
    provider = RetryingProvider(Cut(), ProviderSettings(), clock)
    events = await run(provider, clock)
    assert events[:2] == [TextDelta("Half"), StreamRestarted("stream_cut")]
    assert isinstance(events[2], RetryScheduled)
    assert events[3] == TextDelta("Half")
    assert isinstance(events[4], AnswerCompleted)


async def test_what_is_no_provider_error_passes_through():
    _, provider = retrying(ZeroDivisionError("bug"))
    with pytest.raises(ZeroDivisionError):
        await anext(provider.stream(HELLO))


async def test_leaving_early_ends_the_call_behind_it():
    ended = []

    class Endless(Cut):
        async def stream(self, prompt):
            try:
                while True:
                    yield TextDelta("la")
            finally:
                ended.append(True)

    events = RetryingProvider(Endless(), ProviderSettings(), FakeClock()).stream(HELLO)
    await anext(events)
    await events.aclose()
    assert ended == [True]


def test_it_answers_to_the_name_of_what_it_wraps():
    _, provider = retrying()
    assert (provider.name, provider.model) == ("scripted", "scripted-1")
