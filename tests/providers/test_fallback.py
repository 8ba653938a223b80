"""A chain of services: who is asked, who is not, and what the watcher sees."""

import pytest

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import Message, OpaqueBlock, Role, Text, ToolResult, ToolUse, user
from agentd.core.prompt import AnswerCompleted, Prompt, RetryScheduled, StreamRestarted, TextDelta
from agentd.providers.anthropic_wire import request_body as anthropic_body
from agentd.providers.faults import FAULTS, failure
from agentd.providers.openai_wire import request_body as openai_body
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.resilience import CircuitBreaker, Fallback
from agentd.testing import FakeClock, ScriptedProvider

MOVES_ON = [kind for kind, fault in FAULTS.items() if fault.counts or kind == "budget"]
ENDS = [kind for kind in FAULTS if kind not in MOVES_ON and kind != "breaker_open"]


class Breaking:
    """Says two words, then fails."""

    name, model = "first", "first-1"

    def __init__(self, error):
        self.error = error

    async def stream(self, prompt):
        yield TextDelta("half ")
        yield TextDelta("an answer")
        raise self.error


class Chain:
    """A fallback over scripted providers, each behind its own breaker."""

    def __init__(self, *providers):
        self.clock = FakeClock()
        self.providers = providers
        self.breakers = [CircuitBreaker(p, self.clock) for p in providers]
        self.fallback = Fallback(self.breakers)

    async def ask(self, prompt=None):
        prompt = prompt or Prompt((), (user("Hello"),))
        return [event async for event in self.fallback.stream(prompt)]


def scripted(name, *replies):
    return ScriptedProvider(*replies, name=name, model=f"{name}-1")


def two(*first, second="from the second"):
    return Chain(scripted("first", *first), scripted("second", second))


async def test_another_service_is_asked_for_no_model_and_no_effort_of_the_first():
    chain = two(failure("overloaded"))
    await chain.ask(Prompt((), (user("Hello"),), model="first-2", effort="high"))
    (first,), (second,) = (provider.prompts for provider in chain.providers)
    assert (first.model, first.effort) == ("first-2", "high")
    assert (second.model, second.effort) == (None, "")


async def test_while_the_first_answers_no_other_is_asked():
    chain = two("from the first")
    assert (await chain.ask())[-1].provider == "first"
    assert chain.providers[1].prompts == []
    assert (chain.fallback.name, chain.fallback.model) == ("first", "first-1")
    assert chain.fallback.why() == ""
    assert chain.fallback.problems() == ()


@pytest.mark.parametrize("kind", MOVES_ON)
async def test_a_failing_service_hands_over(kind):
    chain = two(failure(kind))
    assert (await chain.ask())[-1].provider == "second"
    assert (chain.fallback.name, chain.fallback.model) == ("second", "second-1")


@pytest.mark.parametrize("kind", ENDS)
async def test_what_is_no_fault_of_the_service_ends_the_call(kind):
    chain = two(failure(kind))
    with pytest.raises(ProviderError) as caught:
        await chain.ask()
    assert caught.value.kind == kind
    assert isinstance(caught.value, ContextOverflow) == (kind == "overflow")
    assert chain.providers[1].prompts == []


async def test_an_open_breaker_is_passed_without_a_call():
    chain = two(*[failure("server_error")] * 5)
    for _ in range(6):
        await chain.ask()
    assert len(chain.providers[0].prompts) == 5
    assert len(chain.providers[1].prompts) == 6
    assert not chain.fallback.is_open()


async def test_every_call_begins_with_the_first_again():
    chain = two(failure("overloaded"), "back again")
    await chain.ask()
    assert (await chain.ask())[-1].message.text == "back again"
    assert chain.fallback.name == "first"
    assert chain.fallback.why() == ""
    assert chain.fallback.problems() == ()


async def test_the_chain_is_open_only_when_all_of_it_is():
    chain = Chain(
        scripted("first", *[failure("connect")] * 9), scripted("second", *[failure("auth")] * 9)
    )
    for round_ in range(5):
        assert not chain.fallback.is_open(), round_
        with pytest.raises(ProviderError):
            await chain.ask()
    assert chain.fallback.is_open()
    assert chain.fallback.status()["state"] == "open"
    with pytest.raises(ProviderError) as caught:
        await chain.ask()
    assert (caught.value.kind, caught.value.retry_after) == ("breaker_open", 30.0)
    assert [len(p.prompts) for p in chain.providers] == [5, 5]


async def test_what_was_shown_is_taken_back():
    chain = Chain(Breaking(failure("stream_cut")), scripted("second", "whole"))
    events = await chain.ask()
    assert events[:3] == [TextDelta("half "), TextDelta("an answer"), StreamRestarted("stream_cut")]
    assert events[3:-1] == [TextDelta("whole")]
    assert isinstance(events[-1], AnswerCompleted)


async def test_nothing_is_taken_back_that_was_not_shown():
    events = await two(failure("auth")).ask()
    assert not [e for e in events if isinstance(e, StreamRestarted)]


async def test_a_wait_that_was_told_is_nothing_to_take_back():
    class Waiting(Breaking):
        async def stream(self, prompt):
            yield RetryScheduled("overloaded", "The service is overloaded.", 1.0)
            raise self.error

    chain = Chain(Waiting(failure("overloaded")), scripted("second", "whole"))
    events = await chain.ask()
    assert [type(e) for e in events] == [RetryScheduled, TextDelta, AnswerCompleted]


async def test_when_nobody_answers_the_error_names_them_all_and_the_first_ones_cure():
    chain = Chain(
        scripted("first", failure("auth")), scripted("second", failure("connect", retry_after=9))
    )
    with pytest.raises(ProviderError) as caught:
        await chain.ask()
    error = caught.value
    assert (error.kind, error.cure, error.retryable) == ("auth", FAULTS["auth"].cure, False)
    assert error.retry_after == 9
    for said in ("first first-1", "second second-1", FAULTS["connect"].message):
        assert said in error.message


async def test_an_overflow_of_a_fallback_is_an_overflow():
    chain = two(failure("server_error"), second=failure("overflow"))
    with pytest.raises(ContextOverflow):
        await chain.ask()


async def test_a_prompts_own_model_is_the_first_ones():
    chain = two(failure("overloaded"))
    await chain.ask(Prompt((), (user("Hello"),), model="first-small", max_tokens=7))
    (first,), (second,) = (p.prompts for p in chain.providers)
    assert (first.model, second.model) == ("first-small", None)
    assert second.max_tokens == 7


@pytest.mark.parametrize("kind", ["conflict", "stream_cut", "connect"])
async def test_what_may_pass_has_no_cure_that_is_one_for_a_message(kind):
    chain = two(failure(kind))
    await chain.ask()
    (problem,) = chain.fallback.problems()
    assert problem.cure.startswith("Every call asks the first one again")


async def test_status_says_who_answers_and_why():
    chain = two(failure("billing"))
    await chain.ask()
    status = chain.fallback.status()
    assert [(link["kind"], link["in_use"]) for link in status["chain"]] == [
        ("first", False),
        ("second", True),
    ]
    assert (status["state"], status["cause"]) == ("closed", "billing")
    assert chain.fallback.why() == "second second-1 answers instead of first first-1 (billing)"
    (problem,) = chain.fallback.problems()
    assert (problem.code, problem.cure) == ("provider_fallback", FAULTS["billing"].cure)
    assert problem.cure == FAULTS["billing"].cure


async def test_a_consumer_that_leaves_ends_the_call_behind():
    chain = Chain(Breaking(failure("auth")), scripted("second"))
    events = chain.fallback.stream(Prompt((), (user("Hello"),)))
    await anext(events)
    await events.aclose()
    assert chain.providers[1].prompts == []
    assert chain.fallback.problems() == ()


def test_each_service_is_sent_its_own_opaque_blocks_alone():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s=="}
    messages = (
        user("Look"),
        Message(Role.ASSISTANT, (OpaqueBlock("anthropic", thought), ToolUse("c1", "look", {}))),
        Message(Role.USER, (ToolResult("c1", "dust"),)),
        Message(Role.ASSISTANT, (OpaqueBlock("other", {"type": "secret"}), Text("Dust."))),
        user("And now?"),
    )
    prompt = Prompt((), messages)
    settings = ServiceSettings(kind="openai", model="m")
    assert str(openai_body(prompt, settings, "m")).count("thinking") == 0
    anthropic = anthropic_body(prompt, ServiceSettings(kind="anthropic"), "m")
    assert anthropic["messages"][1]["content"][0] == thought
    assert "secret" not in str(anthropic)
