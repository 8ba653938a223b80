"""The provider against real sockets, a compatible service, and one that fails."""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from llmock.scenarios import Fail

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import Message, Role, Text, ToolResult, ToolUse, user
from agentd.core.prompt import AnswerCompleted, Effect, ModelStop, Prompt, ToolSpec
from agentd.providers.openai import OpenAIProvider
from agentd.providers.provider_settings import ServiceSettings
from tests.providers.hearing import STATUSES

TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}}, Effect.READ_ONLY)
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
STREAMS = Path(__file__).parent / "streams" / "openai"


def recorded(name):
    return (STREAMS / f"{name}.txt").read_bytes()


def provider_at(url, key, **settings):
    return OpenAIProvider(
        ServiceSettings(kind="openai", model="gpt-x", base_url=url, **settings), key
    )


def answering(key, answer, **settings):
    """A provider whose service is a function of the request."""
    return OpenAIProvider(
        ServiceSettings(kind="openai", model="gpt-x", **settings),
        key,
        transport=httpx.MockTransport(answer),
    )


def streaming(request):
    headers = {"content-type": "text/event-stream"}
    return httpx.Response(200, headers=headers, content=recorded("text"), request=request)


async def ask(provider, prompt):
    return [event async for event in provider.stream(prompt)][-1]


async def error_of(provider, prompt):
    async with provider:
        with pytest.raises(ProviderError) as caught:
            await ask(provider, prompt)
    return caught.value


def test_importing_the_provider_does_not_import_the_library():
    code = (
        "import sys, agentd.providers.openai, agentd.providers.resilience;"
        "sys.exit(bool({'anthropic', 'httpx2', 'httpx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_real_conversation_over_http(llmock, key, hello):
    llmock.reply("Good morning")
    async with provider_at(llmock.base_url("openai"), key) as provider:
        await provider.warm()
        answer = await ask(provider, hello)
    assert isinstance(answer, AnswerCompleted)
    assert answer.message.text == "Good morning"
    assert answer.usage.input_tokens > 0
    llmock.assert_resilient()


async def test_a_real_tool_round_trip_over_http(llmock, key):
    llmock.call_tool("look", {"where": "under the bed"}, text="I look.").reply("Dust.")
    async with provider_at(llmock.base_url("openai"), key) as provider:
        asked = user("Look")
        first = await ask(provider, Prompt((), (asked,), (TOOL,)))
        use = first.message.tool_uses[0]
        assert (first.stop, use.input) == (ModelStop.TOOL_USE, {"where": "under the bed"})
        result = Message(Role.USER, (ToolResult(use.id, "dust"),))
        second = await ask(provider, Prompt((), (asked, first.message, result), (TOOL,)))
    assert second.message.text == "Dust."
    sent = llmock.last_request.body
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "tool"]
    llmock.assert_resilient()


@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
async def test_each_status_has_one_kind_and_is_asked_once(
    llmock, key, hello, status, kind, retryable
):
    llmock.add(Fail(status, message="SENTINEL of the service", times=None))
    error = await error_of(provider_at(llmock.base_url("openai"), key), hello)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.cure
    assert str(status) in error.message
    assert "SENTINEL" not in f"{error.message}{error.cure}{error.__cause__!r}"
    assert len(llmock.requests) == 1


def body(code=None, text="SENTINEL", kind="invalid_request_error"):
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (400, body("context_length_exceeded"), "overflow"),
        (400, body(text="This model's maximum context length is 8192 tokens."), "overflow"),
        (400, body(text="Your input exceeds the context window of this model."), "overflow"),
        (400, body(400, "the request exceeds the available context size", "x"), "overflow"),
        (400, body(400, kind="exceed_context_size_error"), "overflow"),
        (400, {"object": "error", "message": "maximum context length", "code": 400}, "overflow"),
        (400, {"object": "error", "type": "BadRequestError", "message": "no"}, "bad_request"),
        (400, body("billing_hard_limit_reached"), "billing"),
        (400, [body("context_length_exceeded")], "overflow"),
        (401, body("invalid_api_key"), "auth"),
        (404, body("model_not_found"), "not_found"),
        (404, {"error": "model SENTINEL not found, try pulling it first"}, "not_found"),
        (429, body("insufficient_quota", kind="insufficient_quota"), "billing"),
        (429, body("rate_limit_exceeded", kind="tokens"), "rate_limited"),
        (429, "SENTINEL", "rate_limited"),
        (500, body(kind="server_error"), "server_error"),
        (502, "<html>SENTINEL</html>", "server_error"),
        (200, body("insufficient_quota"), "billing"),
        (200, body(503), "overloaded"),
        (200, {"choices": [{"message": {"content": "SENTINEL"}}]}, "stream_cut"),
        (200, {"error": "SENTINEL"}, "bad_request"),
        (200, {"code": 20012, "message": "SENTINEL"}, "bad_request"),
        (200, {"error": "too much for a context length of only 4096 tokens"}, "overflow"),
        (400, [{"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}], "auth"),
        (405, {"detail": "SENTINEL"}, "not_found"),
        (500, body(text="exceeds the available context size", kind="server_error"), "overflow"),
        (200, "SENTINEL", "bad_stream"),
        (204, "", "server_error"),
    ],
)
async def test_the_services_own_words_decide_where_the_status_does_not(
    key, hello, status, said, kind
):
    error = await error_of(answering(key, lambda _: httpx.Response(status, json=said)), hello)
    assert error.kind == kind
    assert isinstance(error, ContextOverflow) == (kind == "overflow")
    assert "SENTINEL" not in f"{error.message} {error.cure}"


def choosy(*unknown):
    """A server that refuses a request with a key that it does not know, and what it was sent."""
    sent = []

    def answer(request):
        asked = json.loads(request.content)
        sent.append(asked)
        key = next((key for key in unknown if key in asked), None)
        if key is None:
            return streaming(request)
        return httpx.Response(400, json=body(text=f"Unrecognized request argument: {key}"))

    return answer, sent


async def test_a_key_that_no_setting_asks_for_and_that_is_refused_is_left_out_from_then_on(
    key, hello
):
    server, sent = choosy("stream_options", "max_completion_tokens")
    async with answering(key, server) as provider:
        await ask(provider, hello)
        await ask(provider, hello)
    assert len(sent) == 4  # the first call takes three requests, the second one
    for request in sent[2:]:
        assert (request["max_tokens"], "stream_options" in request) == (8192, False)


async def test_a_key_that_a_setting_asks_for_stays_and_the_refusal_is_told(key, hello):
    server, sent = choosy("stream_options")
    error = await error_of(answering(key, server, capabilities={"stream_options": True}), hello)
    assert (error.kind, len(sent)) == ("bad_request", 1)
    assert "stream_options = false" in error.cure


CALLED = Prompt(
    (),
    (
        user("Look"),
        Message(Role.ASSISTANT, (ToolUse("call_0fypS1hVX", "look", {}),)),
        Message(Role.USER, (ToolResult("call_0fypS1hVX", "dust"),)),
        Message(Role.ASSISTANT, (Text("Dust."),)),
        user("And?"),
    ),
    (TOOL,),
)


async def test_reasoning_that_a_service_misses_is_sent_empty_from_then_on(key):
    sent = []

    def thinking(request):
        sent.append(
            [m for m in json.loads(request.content)["messages"] if m["role"] == "assistant"]
        )
        if all("reasoning_content" in message for message in sent[-1]):
            return streaming(request)
        text = "The `reasoning_content` in the thinking mode must be passed back to the API."
        return httpx.Response(400, json=body(text=text))

    async with answering(key, thinking) as provider:
        await ask(provider, CALLED)
        await ask(provider, CALLED)
    assert len(sent) == 3
    assert [message["reasoning_content"] for message in sent[-1]] == ["", ""]


@pytest.mark.parametrize("status", [400, 500])
async def test_ids_that_a_service_quotes_in_a_refusal_are_made_shorter_from_then_on(key, status):
    sent = []

    def strict(request):
        _, asked, told, *_ = json.loads(request.content)["messages"]
        sent.append(asked["tool_calls"][0]["id"])
        assert told["tool_call_id"] == sent[-1]
        if len(sent[-1]) == 9 and sent[-1].isalnum():
            return streaming(request)
        text = f"Tool call id was {sent[-1]} but must be a-z, A-Z, 0-9, with a length of 9."
        return httpx.Response(status, json={"object": "error", "message": text})

    async with answering(key, strict) as provider:
        await ask(provider, CALLED)
        await ask(provider, CALLED)
    assert len(sent) == 3


async def test_each_silence_before_an_answer_doubles_the_next_that_is_borne(key, hello):
    borne = []

    def loading(request):
        borne.append(request.extensions["timeout"]["read"])
        if borne[-1] < 300:
            raise httpx.ReadTimeout("", request=request)
        return streaming(request)

    times = {"timeout": "1m30s", "call_timeout": "5m"}
    async with answering(key, loading, **times) as provider:
        for _ in range(2):
            with pytest.raises(ProviderError):
                await ask(provider, hello)
        await ask(provider, hello)
        await ask(provider, hello)
    assert borne == [90, 180, 300, 300]


async def test_a_request_that_is_refused_for_its_values_stays_what_it_was(key, hello):
    sent = []

    def refusing(request):
        sent.append(json.loads(request.content))
        name = "max_tokens" if "max_tokens" in sent[-1] else "max_completion_tokens"
        return httpx.Response(400, json=body(text=f"{name} must be at most 4096"))

    async with answering(key, refusing) as provider:
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                await ask(provider, hello)
    assert ["max_tokens" in s for s in sent] == [False, True] * 2
    assert "max_completion_tokens" in caught.value.cure


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "Text/Event-Stream", None])
async def test_a_stream_is_known_by_its_first_character_whatever_its_type(key, hello, kind):
    headers = {"content-type": kind} if kind else {}
    text = recorded("text")
    provider = answering(key, lambda _: httpx.Response(200, headers=headers, content=text))
    async with provider:
        answer = await ask(provider, hello)
    assert answer.message.text == "Grüße! 日本 🍵."


async def test_an_answer_that_was_not_streamed_is_taken(key, hello):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    whole = {"object": "chat.completion", "choices": [said], "usage": {"prompt_tokens": 9}}
    provider = answering(key, lambda _: httpx.Response(200, json=whole))
    async with provider:
        answer = await ask(provider, hello)
    assert [use.name for use in answer.message.tool_uses] == ["look"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("text/html", b" <!doctype html>"), ("application/json", b'{"error": "no such endpoint"}')],
)
async def test_what_is_no_model_is_told_by_its_address_and_not_asked_again(key, hello, kind, said):
    headers = {"content-type": kind}
    error = await error_of(
        answering(key, lambda _: httpx.Response(200, headers=headers, content=said)), hello
    )
    assert not error.retryable
    assert "base_url (with /v1" in error.cure


async def test_a_spent_quota_is_not_tried_again_and_a_rate_limit_is(key, hello):
    spent = await error_of(
        answering(key, lambda _: httpx.Response(429, json=body("insufficient_quota"))), hello
    )
    limited = await error_of(
        answering(key, lambda _: httpx.Response(429, headers={"retry-after": "17"})), hello
    )
    assert (spent.retryable, limited.retryable, limited.retry_after) == (False, True, 17.0)


async def test_the_service_may_forbid_a_retry(key, hello):
    headers = {"x-should-retry": "false"}
    error = await error_of(answering(key, lambda _: httpx.Response(500, headers=headers)), hello)
    assert (error.kind, error.retryable) == ("server_error", False)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("disconnect", "stream_cut"), ("truncate", "stream_cut"), ("corrupt", "bad_stream")],
)
async def test_a_stream_that_breaks_is_an_error(llmock, key, hello, fault, kind):
    llmock.reply("one two three four five six")
    getattr(llmock, fault)(after_chunks=3)
    error = await error_of(provider_at(llmock.base_url("openai"), key), hello)
    assert (error.kind, error.retryable) == (kind, True)


async def test_arguments_that_are_no_json_are_an_error(llmock, key):
    llmock.break_tool_call("malformed_arguments")
    prompt = Prompt((), (user("look"),), (TOOL,))
    error = await error_of(provider_at(llmock.base_url("openai"), key), prompt)
    assert error.kind == "bad_tool_json"


# Durations are whole seconds in the configuration, so these take one each.


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "never begun"])
async def test_a_service_that_goes_silent_is_given_up(serving, key, hello, begun):
    async def stall(_, writer):
        if begun:
            writer.write(OK + b"\r\n" + recorded("text")[:600])
        await asyncio.Event().wait()

    async with serving(stall) as url:
        error = await error_of(provider_at(url, key, timeout="1s"), hello)
    assert error.kind == "timeout"


async def test_comments_alone_do_not_keep_a_call_alive_for_ever(serving, key, hello):
    async def chatter(_, writer):
        writer.write(OK + b"\r\n")
        while True:
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serving(chatter) as url:
        error = await error_of(provider_at(url, key, call_timeout="1s"), hello)
    assert error.kind == "too_slow"


async def test_a_whole_answer_does_not_wait_for_a_lingering_connection(serving, key, hello):
    async def linger(_, writer):
        writer.write(OK + b"\r\n" + recorded("text"))
        await asyncio.Event().wait()

    async with serving(linger) as url, provider_at(url, key) as provider, asyncio.timeout(5):
        assert isinstance(await ask(provider, hello), AnswerCompleted)


async def test_a_stopped_answer_outlives_its_connection(serving, key, hello):
    whole = recorded("text")
    stopped = whole.index(b"\n\n", whole.index(b'"finish_reason":"stop"')) + 2

    async def drop(_, writer):
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(whole) + whole[:stopped])
        await writer.drain()
        writer.close()

    async with serving(drop) as url, provider_at(url, key) as provider:
        answer = await ask(provider, hello)
    assert answer.message.text == "Grüße! 日本 🍵."
    assert answer.usage.input_tokens > 0


async def test_a_second_call_uses_the_same_connection(serving, key, hello):
    peers = set()

    async def answer(_, writer):
        peers.add(writer.get_extra_info("peername"))
        whole = recorded("text")
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(whole) + whole)

    async with serving(answer) as url, provider_at(url, key) as provider:
        for _ in range(3):
            await ask(provider, hello)
    assert len(peers) == 1


async def test_the_connection_is_closed_when_the_consumer_leaves(serving, key, hello):
    left = asyncio.get_running_loop().create_future()

    async def watch(reader, writer):
        writer.write(OK + b"\r\n" + recorded("text")[:900])
        await reader.read()
        left.set_result(reader.at_eof())

    async with serving(watch) as url, provider_at(url, key) as provider, asyncio.timeout(20):
        events = provider.stream(hello)
        await anext(events)
        await events.aclose()
        assert await left


async def test_a_redirect_is_not_followed(serving, key, hello):
    visited = []

    async def away(_, writer):
        visited.append(1)
        writer.write(b"HTTP/1.1 307 Go\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    async with serving(away) as url:
        error = await error_of(provider_at(url, key), hello)
    assert (error.kind, error.retryable, len(visited)) == ("redirected", False, 1)


async def test_a_proxy_of_the_environment_gets_nothing(llmock, key, hello, monkeypatch):
    llmock.reply("Good morning")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with provider_at(llmock.base_url("openai"), key) as provider:
        assert isinstance(await ask(provider, hello), AnswerCompleted)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectTimeout, "connect_timeout"),
        (httpx.PoolTimeout, "timeout"),
        (httpx.WriteTimeout, "timeout"),
        (httpx.ConnectError, "connect"),
        (httpx.RemoteProtocolError, "stream_cut"),
        (httpx.ReadError, "stream_cut"),
        (httpx.DecodingError, "bad_stream"),
    ],
)
async def test_each_network_failure_has_one_kind(key, hello, raised, kind):
    def fail(request):
        raise raised("SENTINEL", request=request)

    error = await error_of(answering(key, fail), hello)
    assert (error.kind, error.retryable) == (kind, True)
    assert "SENTINEL" not in repr(error)


async def test_a_certificate_is_accepted_by_the_authority_that_the_environment_names(
    serving, own_authority, key, hello, monkeypatch
):
    authority, tls = own_authority

    async def answer(_, writer):
        whole = recorded("text")
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(whole) + whole)

    async with serving(answer, tls) as url:
        unknown = await error_of(provider_at(url, key), hello)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        async with provider_at(url, key) as provider:
            assert isinstance(await ask(provider, hello), AnswerCompleted)
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
        unreadable = await error_of(provider_at(url, key), hello)
    assert (unknown.kind, unknown.retryable, unknown.away) == ("bad_certificate", False, True)
    assert (unreadable.kind, "/nowhere.pem" in unreadable.message) == ("bad_certificate", True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://[::1", "http://"])
async def test_an_address_where_nobody_answers_is_named(key, hello, url):
    assert (await error_of(provider_at(url, key), hello)).kind == "connect"


async def test_the_key_goes_into_its_header_and_nowhere_else(key, hello, caplog):
    caplog.set_level(logging.DEBUG)
    requests = []

    def answer(request):
        requests.append(request)
        return streaming(request)

    async with answering(key, answer) as provider:
        await ask(provider, hello)
    assert str(requests[0].url) == "https://api.openai.com/v1/chat/completions"
    assert [v for v in requests[0].headers.values() if "SENTINEL" in v] == [
        f"Bearer {key.reveal()}"
    ]
    assert b"SENTINEL" not in requests[0].content
    assert "SENTINEL" not in caplog.text
    assert "Hello" not in caplog.text
    assert not [r for r in caplog.records if r.name.startswith("httpx")]


@pytest.mark.parametrize("base", ["http://localhost:11434/v1", "http://localhost:11434/v1/"])
async def test_another_server_may_need_no_key_and_is_then_sent_none(hello, base):
    requests = []

    def answer(request):
        requests.append(request)
        return streaming(request)

    async with answering(None, answer, base_url=base) as provider:
        await ask(provider, hello)
    assert "authorization" not in requests[0].headers
    assert str(requests[0].url) == "http://localhost:11434/v1/chat/completions"


async def test_the_official_service_is_not_asked_without_a_key(hello):
    error = await error_of(answering(None, streaming), hello)
    assert (error.kind, error.retryable) == ("auth", False)
    assert "OPENAI_API_KEY" in error.cure


async def test_a_prompt_may_name_its_model(key, hello):
    models = []

    def answer(request):
        models.append(json.loads(request.content)["model"])
        return streaming(request)

    async with answering(key, answer) as provider:
        await ask(provider, Prompt((), hello.messages, model="gpt-y"))
        await ask(provider, hello)
    assert models == ["gpt-y", "gpt-x"]


async def test_words_that_are_no_unicode_do_not_break_a_request(key):
    async with answering(key, streaming) as provider:
        assert isinstance(await ask(provider, Prompt((), (user("a\ud800b"),))), AnswerCompleted)
