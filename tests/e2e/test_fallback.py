"""A daemon whose first service is down: the second one runs the turn, and the first one returns."""

from __future__ import annotations

from llmock.pytest_plugin import LLMock

from tests.e2e.harness import Home, check_request


async def test_another_service_runs_the_turn_until_the_first_is_back(
    home: Home, llmock: LLMock
) -> None:
    (home.root / "config.toml").write_text(
        f"""
        [provider]
        kind = "anthropic"
        base_url = "{llmock.base_url("anthropic")}"
        tries = 1
        fallback = [{{ kind = "openai", model = "gpt-x", base_url = "{llmock.base_url("openai")}" }}]
        """,
        encoding="utf-8",
    )
    daemon = await home.start()
    client = await daemon.connect()
    llmock.outage(status=529, provider="anthropic")
    llmock.call_tool("memory_write", {"content": "Ada drinks tea"}).reply("Noted.")
    assert await client.say("Ada drinks tea", "m1") == "Noted."
    assert home.notes().count("Ada drinks tea") == 1
    status = await client.call("_agentd/status")
    assert status["provider"]["kind"] == "anthropic"
    assert "openai gpt-x answers instead" in status["provider"]["why"]
    assert "provider_fallback" in [problem["code"] for problem in status["problems"]]

    llmock.reset().reply("Here I am.")
    assert await client.say("And you?", "m2") == "Here I am."
    (request,) = llmock.requests
    assert request.provider == "anthropic"
    check_request(request.body)
    status = await client.call("_agentd/status")
    assert "instead" not in status["provider"]["why"]
    await daemon.stop()
