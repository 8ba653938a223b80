"""A real daemon whose model's service breaks off, over real connections."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from tests.e2e.harness import Client, Home, ModelServer, Refused, a_home
from tests.streams.breaking import CUTS, FAULTS, broken
from tests.streams.reading import Said, said
from tests.streams.recorded import NAMES, NOTED, WIRES, stream
from tests.streams.serving import TcpService

SETTINGS = """
[provider]
kind = "{wire}"
model = "{model}"
base_url = "{url}"
tries = 1
timeout = "1s"
[agent]
timezone = "UTC"
[facts]
enabled = false
"""


class Campaign:
    """Messages to a daemon whose service is broken; `wrong` is what should not have come of it."""

    def __init__(self, home: Home, service: TcpService, client: Client) -> None:
        self.wrong: list[str] = []
        self.ended: Counter[str] = Counter()
        self._home = home
        self._service = service
        self._client = client
        self._said: list[Said] = []  # whole answers, in order

    async def run(self, faults: int, seed: int) -> None:
        chance = random.Random(seed)
        for number in range(faults):
            name = NAMES[number % len(NAMES)]
            fault = FAULTS[(number + number // len(NAMES)) % len(FAULTS)]
            data = stream(self._service.wire, name, "memory_write", "content")
            await self._fault(name, data, chance.randrange(len(data) + 1), fault)
            first = len(self._service.served)
            try:
                await self._say()
            except Refused as refused:
                self.wrong.append(f"dead after {name}, {fault}: {refused.code}")
            self._said += self._whole(first)
        await self._look_at_what_is_kept()

    async def _fault(self, name: str, data: bytes, at: int, fault: str) -> None:
        first = len(self._service.served)
        self._service.next = [broken(data, at, fault)]
        where = f"{name}, {fault} at {at}"
        code = ""
        try:
            await self._say()
        except Refused as refused:
            code = refused.code
            if not code.startswith("provider_"):
                self.wrong.append(f"{where}: {code}")
        whole = self._whole(first)
        self.ended[code or "whole"] += 1
        if not code and len(whole) < len(self._service.served) - first:
            self.wrong.append(f"{where}: ended well on half an answer")
        # A reset may overtake what was sent before it.
        if code and fault in CUTS and fault != "reset" and whole:
            self.wrong.append(f"{where}: a whole answer was lost: {code}")
        self._said += whole if not code else whole[:-1]

    async def _say(self) -> None:
        prompt = [{"type": "text", "text": "go on"}]
        params = {"sessionId": "main", "prompt": prompt, "_meta": {"agentd/patience": 0}}
        await self._client.call("session/prompt", params)

    def _whole(self, first: int) -> list[Said]:
        answers = [
            said(self._service.wire, sent.data, ended=sent.end in ("", "end"))
            for sent in self._service.served[first:]
        ]
        return [answer for answer in answers if answer is not None]

    async def _look_at_what_is_kept(self) -> None:
        """Each row of the model's is a whole answer, and each note was asked for in one."""
        rows: list[Any] = []
        page: Any = {"next": 1}
        while page["next"]:
            asked = {"key": "main", "first": page["next"]}
            page = await self._client.call("_agentd/sessions/export", asked)
            rows += page["lines"]
        kept = [_read(row["content"]) for row in rows if row["role"] == "assistant"]
        wanted = [(answer.text, answer.calls) for answer in self._said]
        if kept != wanted:
            self.wrong.append(f"kept {kept}, said was {wanted}")
        notes = self._home.notes()
        for text in NOTED:
            called = json.dumps({"content": text}, sort_keys=True)
            times = sum(given == called for one in self._said for _, given in one.calls)
            if notes.count(text.splitlines()[0]) != times:
                self.wrong.append(f"noted {notes.count(text)} times, asked {times}: {text}")


def _read(blocks: list[Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    used = [block for block in blocks if block["type"] == "tool_use"]
    return text, tuple((b["name"], json.dumps(b["input"], sort_keys=True)) for b in used)


async def tried(model: ModelServer, wire: str, faults: int, seed: int) -> Campaign:
    """What came of so many faults."""
    service = TcpService(wire, stream(wire, "text"))
    async with service.listening() as url, a_home(model, wire=wire) as home:
        name = "claude-x" if wire == "anthropic" else "gpt-x"
        settings = SETTINGS.format(wire=wire, model=name, url=url)
        (home.root / "config.toml").write_text(settings, encoding="utf-8")
        daemon = await home.start()
        campaign = Campaign(home, service, await daemon.connect())
        await campaign.run(faults, seed)
        campaign.wrong += service.wrong
        await daemon.stop()
    return campaign


@pytest.mark.timeout(120)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_service_that_breaks_off_costs_a_daemon_one_answer(
    model: ModelServer, wire: str
) -> None:
    campaign = await tried(model, wire, 24, 1)
    assert not campaign.wrong, "\n".join(campaign.wrong)
    assert len(campaign.ended) > 2


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_service_that_breaks_off_a_hundred_times_costs_a_daemon_as_many_answers(
    model: ModelServer, wire: str, capsys: Any
) -> None:
    campaign = await tried(model, wire, 120, 2)
    with capsys.disabled():
        print(f"\n{wire}: {dict(campaign.ended)}")
    assert not campaign.wrong, "\n".join(campaign.wrong)
