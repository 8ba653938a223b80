"""The provider against real sockets and a service that fails."""

import asyncio
import json
import logging
import subprocess
import sys

import httpx2
import pytest
from llmock.scenarios import Fail

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import Message, OpaqueBlock, Role, Text, ToolResult, ToolUse, user
from agentd.core.prompt import AnswerCompleted, Effect, Prompt, ToolSpec
from agentd.providers.anthropic import AnthropicProvider
from agentd.providers.provider_settings import ProviderSettings
from agentd.providers.resilience import CircuitBreaker
from agentd.testing import FakeClock
from tests.providers.hearing import STATUSES

TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}}, Effect.READ_ONLY)
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


async def ask(provider, prompt):
    return [event async for event in provider.stream(prompt)][-1]


async def failing(url, key, prompt, **settings):
    """The error of one call to `url`."""
    async with AnthropicProvider(ProviderSettings(base_url=url, **settings), key) as provider:
        with pytest.raises(ProviderError) as caught:
            await ask(provider, prompt)
    return caught.value


def test_importing_the_provider_does_not_import_the_sdk():
    code = (
        "import sys, agentd.providers.anthropic, agentd.providers.resilience, "
        "agentd.providers.resilience;sys.exit(bool({'anthropic', 'httpx2', 'httpx'} & "
        "set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_real_conversation_over_http(llmock, key, hello):
    llmock.reply("Good morning")
    settings = ProviderSettings(base_url=llmock.base_url("anthropic"))
    async with AnthropicProvider(settings, key) as provider:
        await provider.warm()
        answer = await ask(provider, hello)
    assert isinstance(answer, AnswerCompleted)
    assert answer.message.text == "Good morning"
    assert answer.usage.input_tokens > 0
    llmock.assert_resilient()


async def test_a_real_tool_call_over_http(llmock, key):
    llmock.call_tool("look", {"where": "under the bed"})
    settings = ProviderSettings(base_url=llmock.base_url("anthropic"))
    async with AnthropicProvider(settings, key) as provider:
        answer = await ask(provider, Prompt((), (user("Look"),), (TOOL,)))
    assert answer.message.tool_uses[0].input == {"where": "under the bed"}


@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
async def test_each_status_has_one_kind_and_is_asked_once(
    llmock, key, hello, status, kind, retryable
):
    llmock.add(Fail(status, message="SENTINEL of the service", times=None))
    error = await failing(llmock.base_url("anthropic"), key, hello)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.cure
    assert str(status) in error.message
    assert "SENTINEL" not in f"{error.message}{error.cure}{error.__cause__!r}"
    assert len(llmock.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 212345 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        "This model's maximum context length was exceeded.",
    ],
)
async def test_a_prompt_that_is_too_long_is_an_overflow(llmock, key, hello, text):
    llmock.fail(400, message=text)
    assert isinstance(await failing(llmock.base_url("anthropic"), key, hello), ContextOverflow)


async def test_an_empty_account_is_no_bad_request(llmock, key, hello):
    llmock.fail(400, message="Your credit balance is too low to access the Anthropic API.")
    assert (await failing(llmock.base_url("anthropic"), key, hello)).kind == "billing"


async def test_the_wait_that_the_service_asks_for_is_passed_on(llmock, key, hello):
    llmock.rate_limit(retry_after=17)
    error = await failing(llmock.base_url("anthropic"), key, hello)
    assert (error.kind, error.retry_after) == ("rate_limited", 17.0)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2.5", 2.5),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("-4", 0.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("1764360000000000", 365 * 86_400.0),
    ],
)
async def test_retry_after_is_read_as_seconds_or_as_a_date(key, hello, header, seconds):
    headers = {"retry-after": header, "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(429, headers=headers))
    async with AnthropicProvider(ProviderSettings(), key, transport=transport) as provider:
        with pytest.raises(ProviderError) as caught:
            await ask(provider, hello)
    assert caught.value.retry_after == seconds


async def test_the_service_may_forbid_a_retry(key, hello):
    headers = {"x-should-retry": "false"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(500, headers=headers))
    async with AnthropicProvider(ProviderSettings(), key, transport=transport) as provider:
        with pytest.raises(ProviderError) as caught:
            await ask(provider, hello)
    assert (caught.value.kind, caught.value.retryable) == ("server_error", False)


async def test_a_proxy_of_the_environment_gets_nothing(serving, recorded, key, hello, monkeypatch):
    async def answer(_, writer):
        body = recorded("text")
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(body) + body)

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with (
        serving(answer) as url,
        AnthropicProvider(ProviderSettings(base_url=url), key) as provider,
    ):
        assert isinstance(await ask(provider, hello), AnswerCompleted)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("disconnect", "stream_cut"),
        ("truncate", "stream_cut"),
        ("corrupt", "bad_stream"),
    ],
)
async def test_a_stream_that_breaks_is_an_error(llmock, key, hello, fault, kind):
    llmock.reply("one two three four five six")
    getattr(llmock, fault)(after_chunks=3)
    assert (await failing(llmock.base_url("anthropic"), key, hello)).kind == kind


async def test_arguments_that_are_no_json_are_an_error(llmock, key):
    llmock.break_tool_call("malformed_arguments")
    prompt = Prompt((), (user("look"),), (TOOL,))
    assert (await failing(llmock.base_url("anthropic"), key, prompt)).kind == "bad_tool_json"


# Durations are whole seconds in the configuration, so these four take one each.


async def test_a_service_that_goes_silent_is_given_up(serving, recorded, key, hello):
    async def stall(_, writer):
        writer.write(OK + b"\r\n" + recorded("text")[:600])
        await asyncio.Event().wait()

    async with serving(stall) as url:
        error = await failing(url, key, hello, timeout="1s")
    assert error.kind == "timeout"


async def test_a_service_that_never_begins_is_given_up(serving, key, hello):
    async def stall(*_):
        await asyncio.Event().wait()

    async with serving(stall) as url:
        error = await failing(url, key, hello, timeout="1s")
    assert error.kind == "timeout"


async def test_pings_alone_do_not_keep_a_call_alive_for_ever(serving, key, hello):
    async def ping(_, writer):
        writer.write(OK + b"\r\n")
        while True:
            writer.write(b'event: ping\ndata: {"type": "ping"}\n\n')
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serving(ping) as url:
        error = await failing(url, key, hello, call_timeout="1s")
    assert error.kind == "too_slow"


async def test_a_whole_answer_does_not_wait_for_a_lingering_connection(
    serving, recorded, key, hello
):
    async def linger(_, writer):
        writer.write(OK + b"\r\n" + recorded("text"))
        await asyncio.Event().wait()

    async with (
        serving(linger) as url,
        AnthropicProvider(ProviderSettings(base_url=url), key) as provider,
        asyncio.timeout(5),
    ):
        assert isinstance(await ask(provider, hello), AnswerCompleted)


async def test_a_second_call_uses_the_same_connection(serving, recorded, key, hello):
    peers = set()

    async def answer(_, writer):
        peers.add(writer.get_extra_info("peername"))
        body = recorded("text")
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(body) + body)

    async with (
        serving(answer) as url,
        AnthropicProvider(ProviderSettings(base_url=url), key) as provider,
    ):
        for _ in range(3):
            await ask(provider, hello)
    assert len(peers) == 1


async def test_the_connection_is_closed_when_the_consumer_leaves(serving, recorded, key, hello):
    left = asyncio.get_running_loop().create_future()

    async def watch(reader, writer):
        writer.write(OK + b"\r\n" + recorded("text")[:700])
        await reader.read()
        left.set_result(reader.at_eof())

    async with (
        serving(watch) as url,
        AnthropicProvider(ProviderSettings(base_url=url), key) as provider,
        asyncio.timeout(20),
    ):
        events = provider.stream(hello)
        await anext(events)
        await events.aclose()
        assert await left


async def test_a_certificate_is_accepted_by_the_authority_that_the_environment_names(
    serving, own_authority, recorded, key, hello, monkeypatch
):
    authority, tls = own_authority

    async def answer(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(recorded("text")) + recorded("text"))

    async with serving(answer, tls) as url:
        assert (await failing(url, key, hello)).kind == "bad_certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        async with AnthropicProvider(ProviderSettings(base_url=url), key) as provider:
            assert isinstance(await ask(provider, hello), AnswerCompleted)


async def test_a_refused_connection_is_named(key, hello):
    assert (await failing("http://127.0.0.1:1", key, hello)).kind == "connect"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectTimeout, "connect_timeout"),
        (httpx2.PoolTimeout, "timeout"),
        (httpx2.WriteTimeout, "timeout"),
        (httpx2.ConnectError, "connect"),
        (httpx2.RemoteProtocolError, "stream_cut"),
        (httpx2.ReadError, "stream_cut"),
    ],
)
async def test_each_network_failure_has_one_kind(key, hello, raised, kind):
    def fail(request):
        raise raised("SENTINEL", request=request)

    transport = httpx2.MockTransport(fail)
    async with AnthropicProvider(ProviderSettings(), key, transport=transport) as provider:
        with pytest.raises(ProviderError) as caught:
            await ask(provider, hello)
    assert (caught.value.kind, caught.value.retryable) == (kind, True)
    assert "SENTINEL" not in repr(caught.value)


async def test_a_redirect_is_not_followed(serving, key, hello):
    visited = []

    async def away(_, writer):
        visited.append(1)
        writer.write(b"HTTP/1.1 307 Go\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    async with serving(away) as url:
        error = await failing(url, key, hello)
    assert (error.kind, error.retryable, len(visited)) == ("redirected", False, 1)


async def test_without_a_key_each_call_says_which_variable_to_set(hello):
    provider = AnthropicProvider(ProviderSettings(api_key_env="MY_KEY"), None)
    await provider.warm()
    with pytest.raises(ProviderError) as caught:
        await ask(provider, hello)
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)
    assert "MY_KEY" in caught.value.cure


async def test_the_key_goes_into_its_header_and_nowhere_else(playing, recorded, key, hello):
    requests = []
    async with playing(recorded("text"), requests=requests) as provider:
        await ask(provider, hello)
    assert [v for v in requests[0].headers.values() if "SENTINEL" in v] == [
        f"Bearer {key.reveal()}"
    ]
    assert b"SENTINEL" not in requests[0].content
    assert b'"stream":true' in requests[0].content.replace(b" ", b"")


async def test_no_log_level_writes_the_key_or_the_words(playing, recorded, hello, caplog):
    caplog.set_level(logging.DEBUG)
    async with playing(recorded("text")) as provider:
        await ask(provider, hello)
    assert "SENTINEL" not in caplog.text
    assert "Hello" not in caplog.text


async def test_the_sdks_own_variable_names_the_service_when_the_configuration_does_not(
    llmock, key, hello
):
    llmock.reply("Good morning")  # the fixture has set ANTHROPIC_BASE_URL
    async with AnthropicProvider(ProviderSettings(), key) as provider:
        assert (await ask(provider, hello)).message.text == "Good morning"


async def test_a_prompt_may_name_its_model(playing, recorded, hello):
    requests = []
    async with playing(recorded("text"), requests=requests) as provider:
        await ask(provider, Prompt((), hello.messages, model="claude-haiku-5-5"))
        await ask(provider, hello)
    assert b"claude-haiku-5-5" in requests[0].content
    assert b"claude-sonnet-5-5" in requests[1].content


async def test_stored_words_that_are_no_unicode_are_sent_in_readable_form(playing, recorded, hello):
    thought = OpaqueBlock("anthropic", {"type": "thinking", "thinking": "\ud800", "signature": "s"})
    use = ToolUse("toolu_1", "lo\ud800ok", {"\udfff": ["\ud800"]})
    said = Message(Role.ASSISTANT, (thought, Text("a\ud800b"), use))
    told = Message(Role.USER, (ToolResult("toolu_1", "seen\udc00"),))
    requests = []
    async with playing(recorded("text"), requests=requests) as provider:
        await ask(provider, Prompt(("be\ud800",), (*hello.messages, said, told)))
    body = json.loads(requests[0].content)
    assert body["system"][0]["text"] == "be\ufffd"
    words, call = body["messages"][1]["content"]
    assert (words["text"], call["input"]) == ("a\ufffdb", {"\ufffd": ["\ufffd"]})
    assert body["messages"][2]["content"][0]["content"] == "seen\ufffd"


async def test_a_request_that_we_cannot_build_is_no_failure_of_the_service(
    playing, recorded, hello
):
    tool = ToolSpec("look", "Looks.", {"type": object()}, Effect.READ_ONLY)
    requests = []
    async with playing(recorded("text"), requests=requests) as provider:
        breaker = CircuitBreaker(provider, FakeClock())
        for _ in range(6):
            with pytest.raises(ValueError, match="serialize"):
                await ask(breaker, Prompt((), hello.messages, (tool,)))
        assert breaker.status()["failures"] == 0
        assert isinstance(await ask(breaker, hello), AnswerCompleted)
    assert len(requests) == 1
