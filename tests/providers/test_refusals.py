"""What a service says when it refuses: the log has its words, and the owner is told what helps."""

import json

import httpx
import pytest
from structlog.testing import capture_logs

from agentd.core.errors import ProviderError
from agentd.core.message import Message, Role, Text
from agentd.core.prompt import Effect, Prompt, ToolSpec
from agentd.core.secrets import Secret
from agentd.providers.faults import refusal_error, spoken
from agentd.providers.openai import OpenAIProvider
from agentd.providers.provider_settings import ServiceSettings
from agentd.testing.blobs import PNG, MemoryBlobs

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {}}, Effect.READ_ONLY)
BLIND = {"images": "Set images = false."}


async def refusal(prompt, status, said, blobs=None):
    """The error of a call that is refused so, and what the log has of it."""
    provider = OpenAIProvider(
        ServiceSettings(kind="openai", model="gpt-x"),
        Secret("sk-test-0123456789abcdef", "test"),
        blobs=blobs,
        transport=httpx.MockTransport(lambda _: httpx.Response(status, json=said)),
    )
    async with provider:
        with capture_logs() as logs, pytest.raises(ProviderError) as caught:
            async for _ in provider.stream(prompt):
                pass
    return caught.value, [line for line in logs if line["event"] == "provider_refused"]


def asking(*blocks):
    return Prompt((), (Message(Role.USER, blocks or (Text("Hello"),)),), (LOOK,))


@pytest.mark.parametrize(
    ("status", "said", "cure"),
    [
        (400, {"error": {"message": "llama2 does not support tools"}}, "[provider] model"),
        (
            422,
            {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]},
            "stream_options = false in [provider.capabilities]",
        ),
        (
            400,
            {"error": {"message": "Unsupported parameter: max_completion_tokens"}},
            'max_tokens_field = "max_tokens"',
        ),
        (400, {"error": {"message": "no such role"}}, "`agentd logs"),
    ],
)
async def test_the_log_has_the_words_and_the_owner_is_told_the_setting(status, said, cure):
    error, (line,) = await refusal(asking(), status, said)
    words = said["error"]["message"] if "error" in said else "extra fields not permitted"
    assert words in line["service_said"]
    assert error.kind == "bad_request"
    assert cure in error.cure
    assert words not in error.message + error.cure


async def test_a_refused_picture_names_the_setting_for_models_that_cannot_see():
    blobs = MemoryBlobs()
    said = {"error": {"message": "this model does not support image input"}}
    async with blobs.keep([PNG + b"0000"]) as (image,):
        seen, _ = await refusal(asking(image, Text("What is it?")), 400, said, blobs)
    assert "images = false in [provider]" in seen.cure
    without, _ = await refusal(asking(), 400, said, blobs)
    assert "images" not in without.cure


async def test_an_error_inside_an_answer_is_in_the_log_too():
    error, (line,) = await refusal(asking(), 200, {"error": {"message": "the GPU is gone"}})
    assert line["service_said"] == "the GPU is gone"
    assert "GPU" not in error.message


async def test_the_log_has_the_status_that_an_answer_reports_inside():
    said = {"error": {"code": 429, "message": "wait a little"}}
    error, (line,) = await refusal(asking(), 200, said)
    assert (error.kind, line["status"]) == ("rate_limited", 429)


async def test_an_answer_that_is_no_stream_is_not_written_into_the_log():
    said = {"choices": [{"message": {"content": "words of the model"}}]}
    error, lines = await refusal(asking(), 200, said)
    assert (error.kind, lines) == ("stream_cut", [])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html>\n  busy </html>", "<html> busy </html>"),
        ('{"detail": "Not here"}', "Not here"),
        ('{"error": "model x not found"}', "model x not found"),
        ('{"detail": [{"msg": "bad", "input": "what was asked"}]}', "bad"),
        ('{"choices": ["what was said"]}', ""),
        ('{"error": ' * 3000 + "1" + "}" * 3000, None),
        ("", ""),
    ],
)
def test_only_what_is_said_for_people_is_repeated(body, words):
    found = spoken(body)
    assert len(found) <= 402 if words is None else found == words


def test_long_words_are_cut_between_two_of_them():
    cut = spoken("word " * 79 + "sk-0123456789abcdef0123456789")
    assert cut == "word " * 78 + "word …"


@pytest.mark.parametrize("kind", ["image", "image_url"])
def test_a_picture_counts_in_the_form_of_either_service(kind):
    body = {"messages": [{"role": "user", "content": [{"type": kind}]}]}
    for status in (400, 404, 500):
        error = refusal_error(status, "", json.dumps({"error": "no"}), {}, body=body, cures=BLIND)
        assert error.cure.startswith("Set images = false.")
    assert "images" not in refusal_error(401, "", "", {}, body=body, cures=BLIND).cure
