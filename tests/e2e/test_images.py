"""Images from a client to the model and back, over restarts, kills, forks and deletions."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import acp
from acp import schema

from agentd.testing import PNG
from tests import finding
from tests.e2e.harness import PATIENCE, Client, Home
from tests.e2e.shell import a_shell
from tests.e2e.test_acp_client import Editor, connected

PICTURE = PNG + b"Quetzalschwanzfeder" + bytes(range(256)) * 1000
ENCODED = base64.b64encode(PICTURE).decode()
CANARY = b"Quetzalschwanzfeder"

Json = dict[str, Any]


def picture(data: str = ENCODED) -> Json:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def show(client: Client, text: str, message_id: str, session: str = "main") -> asyncio.Future[Any]:
    """A message with the picture on its way."""
    blocks = [picture(), {"type": "text", "text": text}]
    meta = {"agentd/messageId": message_id}
    return client.start("session/prompt", {"sessionId": session, "prompt": blocks, "_meta": meta})


def seen(body: Json) -> list[str]:
    """The bytes of images in a request to the model, as base64."""
    blocks = [b for m in body["messages"] for b in m["content"] if isinstance(b, dict)]
    return [b["source"]["data"] for b in blocks if b["type"] == "image"]


def holding(root: Path) -> set[str]:
    return finding.holding(root, CANARY)


async def test_the_model_sees_the_bytes_now_and_after_a_restart(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    answer = await show(client, "say a feather", "m1")
    assert answer["_meta"]["agentd/text"] == "a feather"
    assert seen(home.requests()[-1]) == [ENCODED]
    (row, _) = await client.export()
    image, words = row["content"]
    assert words == {"type": "text", "text": "say a feather"}
    assert (image["type"], image["media_type"], image["size"]) == (
        *("image", "image/png", len(PICTURE)),
    )
    assert ENCODED[:100] not in json.dumps(row), "an export has references only"
    await daemon.stop()
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("say again", "m2") == "again"
    assert seen(home.requests()[-1]) == [ENCODED]
    await client.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    assert any(json.dumps(picture())[1:-1] in json.dumps(json.loads(x)) for x in client.lines)
    await daemon.stop()


async def test_a_kill_behind_accepted_keeps_the_image(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    client.prompt("gate held", "m1")
    await client.wait_accepted("m1")
    show(client, "say a feather", "m2")
    await client.wait_accepted("m2")
    await daemon.kill()
    daemon = await home.start()
    client = await daemon.connect()
    await home.model.open_gate(home.name, "held")
    answer = await show(client, "say a feather", "m2")
    assert answer["_meta"]["agentd/text"] == "a feather"
    assert seen(home.requests()[-1]) == [ENCODED]
    assert len(list((home.root / "state" / "blobs").glob("*/*"))) == 1
    await daemon.stop()


async def test_a_kill_before_the_message_leaves_an_orphan_that_the_next_start_takes(
    home: Home,
) -> None:
    daemon = await home.start("image.stored")
    client = await daemon.connect()
    show(client, "say a feather", "m1")
    await daemon.killed()
    assert holding(home.root), "the test could not fail"
    daemon = await home.start()
    client = await daemon.connect()
    assert not holding(home.root)
    answer = await show(client, "say a feather", "m1")
    assert answer["_meta"]["agentd/text"] == "a feather"
    assert len(await client.export()) == 2
    await daemon.stop()


async def test_a_damaged_image_costs_only_itself(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await show(client, "say a feather", "m1")
    (file,) = (home.root / "state" / "blobs").glob("*/*")
    file.write_bytes(b"rot")
    assert await client.say("say go on", "m2") == "go on"
    told = json.dumps(home.requests()[-1]["messages"])
    assert "not sent: the file of an image is damaged" in told
    assert seen(home.requests()[-1]) == []
    await daemon.stop()


async def test_a_model_without_eyes_is_told_in_words(home: Home) -> None:
    home.configure("images = false\n")
    daemon = await home.start()
    client = await daemon.connect()
    await show(client, "say a feather", "m1")
    assert seen(home.requests()[-1]) == []
    assert "not sent: this model is not given images" in json.dumps(home.requests()[-1])
    await daemon.stop()


async def test_a_picture_lives_as_long_as_a_session_that_shows_it(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    place = {"cwd": "/", "mcpServers": []}
    key = (await client.call("session/new", place))["sessionId"]
    await show(client, "say a feather", "m1", key)
    copy = (await client.call("session/fork", {"sessionId": key, **place}))["sessionId"]
    await client.call("_agentd/sessions/delete", {"key": key})
    assert len(holding(home.root)) == 1
    assert await client.say("say still there", "m2", copy) == "still there"
    assert seen(home.requests()[-1]) == [ENCODED]
    await client.call("_agentd/sessions/delete", {"key": copy})
    assert not holding(home.root)
    await daemon.stop()


async def test_the_protocols_own_client_shows_and_is_shown_an_image(home: Home) -> None:
    daemon = await home.start()
    await daemon.connect()
    first, second = Editor(), Editor()
    async with connected(home, first) as agent, asyncio.timeout(PATIENCE):
        made = await agent.new_session(cwd="/", mcp_servers=[])
        blocks = [acp.image_block(ENCODED, "image/png"), acp.text_block("say a feather")]
        assert (await agent.prompt(made.session_id, blocks)).stop_reason == "end_turn"
    assert seen(home.requests()[-1]) == [ENCODED]
    async with connected(home, second) as agent, asyncio.timeout(PATIENCE):
        await agent.load_session(cwd="/", session_id=made.session_id, mcp_servers=[])
        chunks = [u for u in second.shown if isinstance(u, schema.UserMessageChunk)]
    assert isinstance(chunks[0].content, schema.ImageContentBlock)
    assert chunks[0].content.data == ENCODED
    await daemon.stop()


async def test_larger_images_fit_once_both_limits_are_raised(home: Home) -> None:
    home.configure("[server]\nmax_frame_bytes = 6000000\nmax_image_bytes = 4194304\n")
    daemon = await home.start()
    client = await daemon.connect()
    large = base64.b64encode(PICTURE + bytes(4_000_000 - len(PICTURE))).decode()
    blocks = [picture(large), {"type": "text", "text": "say large"}]
    answer = await client.call("session/prompt", {"sessionId": "main", "prompt": blocks})
    assert answer["_meta"]["agentd/text"] == "large"
    assert [large] in [seen(body) for body in home.requests()]
    await client.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    assert any(large in line for line in client.lines)
    await daemon.stop()


def test_a_shell_sends_backs_up_restores_and_deletes_an_image(tmp_path: Path) -> None:
    file = tmp_path / "feather.png"
    file.write_bytes(PICTURE)
    with a_shell() as shell, a_shell() as other:
        shell.wake()
        sent = shell.ok("send", "thanks", "--image", str(file), "--session", "chat:bird")
        assert sent.out.startswith("I cannot see images")
        (row, _) = shell.ok("sessions", "export", "chat:bird").lines
        assert [block["type"] for block in row["content"]] == ["image", "text"]
        shell.ok("export", "out")
        exported = shell.root / "out" / "images" / row["content"][0]["sha256"]
        assert exported.read_bytes() == PICTURE
        rmtree(shell.root / "out")
        shell.ok("backup", str(other.root / "b.tar.gz"))
        shell.ok("sessions", "delete", "chat:bird", "--yes")
        assert not holding(shell.root)
        other.ok("restore", str(other.root / "b.tar.gz"))
        (other.root / "b.tar.gz").unlink()
        assert len(holding(other.root)) == 1
        other.wake()
        assert len(holding(other.root)) == 1
        wrong = tmp_path / "words.png"
        wrong.write_text("no picture")
        assert shell("send", "x", "--image", str(wrong)).code == 2
        file.write_bytes(PICTURE + bytes(800_000))
        refused = shell("send", "x", "--image", str(file))
        assert (refused.code, "feather.png cannot be opened" in refused.err) == (2, True)
        assert shell("send", "x", "--image", str(tmp_path / "none.png")).code == 1


def test_a_limit_that_no_frame_carries_is_reported_by_config_check() -> None:
    with a_shell() as shell:
        (shell.root / "config.toml").write_text("[server]\nmax_image_bytes = 4194304\n")
        checked = shell("config", "check")
        assert checked.code == 78
        assert "needs max_frame_bytes = 5608792 or more" in checked.err
