"""Secrets that the daemon was given stand nowhere below its home, whoever says them and however."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from tests import finding
from tests.e2e.harness import Home, ModelServer, a_home

VARIABLES = (
    "ANTHROPIC_API_KEY",
    "STANDBY_KEY",  # of the fallback
    "OPENAI_API_KEY",
    "HOOK_ADDRESS",  # of the webhook
    "GITHUB_TOKEN",
    "DATABASE_PASSWORD",
    "AWS_SECRET_ACCESS_KEY",
    "CLIENT_SECRET",
    "BOT_TOKEN",
    "SERVICE_API_KEY",
)
SETTINGS = """
[[provider.fallback]]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "m"
api_key_env = "STANDBY_KEY"
[alerts]
webhook_url_env = "HOOK_ADDRESS"
"""


def secret(number: int, name: str) -> str:
    word = f"c4n4ry{number}/Quetzal+{'xyzw'[number % 4] * (5 + number)}=Feder"
    return f"http://127.0.0.1:9/{word}" if name == "HOOK_ADDRESS" else word


SECRETS = {name: secret(number, name) for number, name in enumerate(VARIABLES)}


def forms(word: str) -> dict[str, str]:
    """What somebody says to say a secret."""
    return {
        "plain": word,
        "base64": base64.b64encode(word.encode()).decode(),
        "url": quote(word, safe=""),
        "split": word,
    }


def found(home: Home) -> set[str]:
    """Those of the forty that a file below the home holds, as `VARIABLE form`."""
    return {
        f"{name} {form}"
        for name, word in SECRETS.items()
        for form, said in forms(word).items()
        if finding.holding(home.root, said.encode(), least=10)
    }


async def talked(home: Home) -> set[str]:
    """What is found when all forty have been said by user and model, as answers, notes and
    alerts.
    """
    daemon = await home.start()
    client = await daemon.connect()
    for name, word in SECRETS.items():
        for form, said in forms(word).items():
            verb = "bits" if form == "split" else "say"
            await client.say(f"{verb} {said}", f"{name} {form} 1")
            steps = f"do write {said} & add ideas.md {said} & tell {said}; say {said}"
            await client.say(steps, f"{name} {form} 2")
        await client.call("_agentd/sessions/compact", {"key": "main"})
    await client.call("_agentd/memory/index", {})
    running = found(home)
    await daemon.stop()
    return running | found(home)


async def test_forty_canaries_of_configured_secrets_are_found_nowhere(model: ModelServer) -> None:
    async with a_home(model, SETTINGS) as home:
        home.variables |= SECRETS
        assert await talked(home) == set()
        assert "[secret:configured]" in home.notes(), "the notes were written"


async def test_the_same_words_are_found_where_they_are_no_secrets(model: ModelServer) -> None:
    """The negative control: what is looked for would be seen."""
    async with a_home(model) as home:
        assert len(await talked(home)) == 40


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_key_of_the_users_own_leaves_a_mark_unless_that_is_switched_off(
    model: ModelServer, is_on: bool
) -> None:
    key = "ghp_" + "a1B2" * 9
    async with a_home(model, f"[log]\nredact_messages = {str(is_on).lower()}\n") as home:
        daemon = await home.start()
        client = await daemon.connect()
        assert await client.say(f"say {key}", "m1") == key, "the running turn sees it"
        row = (await client.export())[0]
        kept = "say [secret:github]" if is_on else f"say {key}"
        assert row["content"] == [{"type": "text", "text": kept}]
        told = [line for line in client.lines if "_agentd/accepted" in line]
        assert ('"redacted":1' in told[0].replace(" ", "")) is is_on
        assert any("holds a key" in line for line in client.lines) is is_on
        await daemon.stop()
        assert bool(finding.holding(home.root, key.encode())) is not is_on


async def test_the_owners_own_file_keeps_its_key_and_nothing_else_has_it(
    model: ModelServer,
) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    async with a_home(model) as home:
        home.furnish()
        home.scribble(f"the key of the bucket is {key}")
        daemon = await home.start()
        client = await daemon.connect()
        await client.call("_agentd/memory/index", {})
        hits = await client.call("_agentd/memory/search", {"query": "key of the bucket"})
        assert "[secret:aws]" in hits["results"][0]["text"]
        await client.say("write more", "m1")
        assert key in home.notes()
        await daemon.stop()
        held = finding.holding(home.root, key.encode())
        assert {name.partition("/")[0] for name in held} == {"workspace"}
