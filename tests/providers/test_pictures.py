"""Images on their way to a model: their bytes, or words that say why not."""

import base64
import json

import httpx
import httpx2
import pytest

from agentd.core.message import Image, Message, Role, Text, assistant, user
from agentd.core.prompt import AnswerCompleted, Prompt
from agentd.core.secrets import Secret
from agentd.core.turn import Usage
from agentd.providers.anthropic import AnthropicProvider
from agentd.providers.offline.provider import OfflineProvider
from agentd.providers.openai import OpenAIProvider
from agentd.providers.pictures import with_pictures
from agentd.providers.provider_settings import ServiceSettings
from agentd.testing import PNG, MemoryBlobs
from tests.providers.conftest import read_recorded

PICTURE = PNG + b"a view of the harbour"
BASE64 = base64.b64encode(PICTURE).decode()
LABEL = "[image image/png, 1 kB, not sent: {why}]"


@pytest.fixture
async def blobs():
    return MemoryBlobs()


async def kept(blobs, data=PICTURE):
    async with blobs.keep([data]) as (image,):
        return image


def asked(*blocks):
    return Prompt((), (Message(Role.USER, blocks),))


def texts(prompt):
    return [b.text for m in prompt.messages for b in m.blocks if isinstance(b, Text)]


async def anthropic_body(prompt, blobs, **settings):
    requests = []

    def answer(request):
        requests.append(json.loads(request.content))
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=read_recorded("text"))

    provider = AnthropicProvider(
        ServiceSettings(**settings),
        Secret("sk", "test"),
        blobs=blobs,
        transport=httpx2.MockTransport(answer),
    )
    async with provider:
        events = [event async for event in provider.stream(prompt)]
    assert isinstance(events[-1], AnswerCompleted)
    return requests[0]


async def openai_answer(prompt, blobs, usage=True, **settings):
    requests = []
    chunks = [{"choices": [{"index": 0, "delta": {"content": "a cat"}, "finish_reason": "stop"}]}]
    if usage:
        chunks[0]["usage"] = {"prompt_tokens": 3, "completion_tokens": 2}
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"

    def answer(request):
        requests.append(json.loads(request.content))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=stream)

    provider = OpenAIProvider(
        ServiceSettings(kind="openai", model="m", base_url="http://x/v1", **settings),
        None,
        blobs=blobs,
        transport=httpx.MockTransport(answer),
    )
    async with provider:
        events = [event async for event in provider.stream(prompt)]
    return requests[0], events[-1]


async def test_claude_is_shown_the_bytes_before_the_words(blobs):
    image = await kept(blobs)
    body = await anthropic_body(asked(image, Text("what is it?")), blobs)
    (message,) = body["messages"]
    shown, words = message["content"]
    source = {"type": "base64", "media_type": "image/png", "data": BASE64}
    assert shown == {"type": "image", "source": source}
    assert words["text"] == "what is it?"


async def test_an_openai_server_is_shown_the_bytes_as_a_data_url(blobs):
    image = await kept(blobs)
    body, _ = await openai_answer(asked(image, Text("what is it?")), blobs)
    url = f"data:image/png;base64,{BASE64}"
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "text", "text": "what is it?"},
            ],
        }
    ]


async def test_a_server_that_counts_no_tokens_is_not_charged_for_base64(blobs):
    image = await kept(blobs, PICTURE + bytes(300_000))
    _, answered = await openai_answer(asked(image, Text("look")), blobs, usage=False)
    assert 1_600 < answered.usage.input_tokens < 2_000


async def test_a_model_without_eyes_is_told_that_there_was_an_image(blobs):
    image = await kept(blobs)
    why = "this model is not given images ([provider] images)"
    body = await anthropic_body(asked(image, Text("look")), blobs, images=False)
    said = [block["text"] for block in body["messages"][0]["content"]]
    assert said == [LABEL.format(why=why), "look"]
    body, _ = await openai_answer(asked(image, Text("look")), blobs, images=False)
    assert body["messages"][0]["content"] == f"{LABEL.format(why=why)}\n\nlook"


async def test_a_missing_file_costs_its_image_only(blobs):
    gone, image = Image("image/png", "a" * 64, 900), await kept(blobs)
    prompt, pictures = await with_pictures(asked(gone, image, Text("look")), blobs, can_see=True)
    assert prompt.messages[0].blocks[1:] == (image, Text("look"))
    assert texts(prompt)[0] == LABEL.format(why="the file of an image is gone")
    assert pictures == {image.sha256: BASE64}


async def test_without_images_a_prompt_is_the_same_object(blobs):
    prompt = Prompt((), (user("a"), assistant("b"), user("c")))
    assert (await with_pictures(prompt, blobs, can_see=True))[0] is prompt


async def test_of_too_many_images_the_newest_are_shown(blobs):
    images = [await kept(blobs, PICTURE + bytes([n])) for n in range(23)]
    prompt, pictures = await with_pictures(asked(*images), blobs, can_see=True)
    assert set(pictures) == {image.sha256 for image in images[3:]}
    assert texts(prompt) == [LABEL.format(why="newer ones fill the request")] * 3


async def test_the_same_image_is_read_once(blobs):
    image = await kept(blobs)
    prompt, pictures = await with_pictures(asked(image, image), blobs, can_see=True)
    assert prompt.messages[0].blocks == (image, image)
    assert list(pictures) == [image.sha256]


async def test_the_offline_mode_says_that_it_cannot_see(blobs):
    image = await kept(blobs)
    provider = OfflineProvider()
    *_, blind = [e async for e in provider.stream(asked(image, Text("thanks")))]
    *_, plain = [e async for e in provider.stream(asked(Text("thanks")))]
    assert blind.message.text.startswith("I cannot see images")
    assert blind.message.text.endswith(plain.message.text)
    assert blind.usage != Usage()
