"""Every hostile text, by every way in, along every way on: it reaches no unmarked place."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agentd.engine.approvals import BY_DEFAULT
from benchmarks.screening import attacks
from tests.privacy.obedient import MARK, WORDS, Blind, Home
from tests.privacy.payloads import PAYLOADS

Way = Callable[[Home, str], Awaitable[str]]
NOTE = "memory/2026-11-21.md"
GROUP = "group:club"


async def _attached(home: Home, text: str) -> str:
    await home.attach("main", f"\nfile:///mail.txt\n```\n{text}\n```\n")
    return "main"


async def _named(home: Home, text: str) -> str:
    await home.attach("main", f"\nfile:///{text}\n```\nnothing\n```\n")
    return "main"


async def _linked(home: Home, text: str) -> str:
    await home.attach("main", f"\n[{text}](https://example.org/)\n")
    return "main"


async def _read(home: Home, text: str) -> str:
    await home.mail("main", text)
    return "main"


async def _by_a_beat(home: Home, text: str) -> str:
    await home.beat(text)
    return "main"


async def _said_in_a_group(home: Home, text: str) -> str:
    await home.say(GROUP, text)
    await home.say("main", WORDS, ("memory_read", {"path": f"sessions/{GROUP}.jsonl"}))
    return "main"


async def _written_by_a_group(home: Home, text: str) -> str:
    home.owner.yes = True
    home.model.obeys = False
    wish = {"target": "shared/club.md", "content": text.replace("\u2066", "").replace("\u2069", "")}
    await home.say(GROUP, "write it down", ("memory_write", wish))
    home.owner.yes, home.model.obeys = False, True
    await home.say("main", WORDS, ("memory_read", {"path": "shared/club.md"}))
    return "main"


async def _imported_answer(home: Home, text: str) -> str:
    lines = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": text}]
    return await _begun(home, await home.bring_in(lines))


async def _imported_result(home: Home, text: str) -> str:
    use = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": text}
    lines = [
        {"role": "user", "content": WORDS},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    return await _begun(home, await home.bring_in(lines))


async def _imported_words_of_others(home: Home, text: str) -> str:
    lines = [
        {"role": "user", "content": WORDS},
        {"role": "user", "content": text, "name": "Mallory"},
    ]
    return await _begun(home, await home.bring_in(lines))


async def _begun(home: Home, session: str) -> str:
    await home.say(session, WORDS)
    return session


async def _in_a_note(home: Home, text: str) -> str:
    lines = [f"- [08:00] {line} {MARK}\n" for line in text.split("\n")]
    (home.workspace / "memory").mkdir(exist_ok=True)
    (home.workspace / NOTE).write_text("# note\n\n" + "".join(lines))
    await home.say("main", WORDS)
    return "main"


async def _no_further(home: Home, session: str) -> None:
    pass


async def _talk(home: Home, session: str) -> None:
    await home.say(session, WORDS)


async def _compacted(home: Home, session: str) -> None:
    await home.say(session, WORDS)
    await home.compact(session)
    await home.say(session, WORDS)


async def _started_over(home: Home, session: str) -> None:
    await home.start_over(session)
    await home.say(session, WORDS)


async def _copied(home: Home, session: str) -> None:
    copy = await home.copied(session)
    await home.say(copy, WORDS)
    await home.compact(copy)
    await home.say(copy, WORDS)


async def _the_next_day(home: Home, session: str) -> None:
    await home.clock.advance(24 * 3600)
    await home.say("chat:fresh", WORDS)


async def _read_again(home: Home, session: str) -> None:
    await home.start_over(session)
    for path in (NOTE, f"sessions/{session}.jsonl"):
        await home.say(session, WORDS, ("memory_read", {"path": path}))


async def _searched(home: Home, session: str) -> None:
    await home.start_over(session)
    await home.parts.memory.indexer.sync()
    await home.say(session, WORDS, ("memory_search", {"query": "garden plan done mail"}))


async def _learnt(home: Home, session: str) -> None:
    await home.flush(session)
    await home.learn(session)
    await home.say("chat:fresh", WORDS)


async def _alerted(home: Home, session: str) -> None:
    await home.start_over("main")
    await home.deliver()
    await home.say("main", WORDS)


WAYS_IN: dict[str, Way] = {
    "attached": _attached,
    "name of an attachment": _named,
    "link": _linked,
    "read by a tool": _read,
    "read by a beat": _by_a_beat,
    "said in a group": _said_in_a_group,
    "written by a group": _written_by_a_group,
    "imported answer": _imported_answer,
    "imported result": _imported_result,
    "imported words of others": _imported_words_of_others,
    "marked line of a note": _in_a_note,
}
WAYS_ON: dict[str, Callable[[Home, str], Awaitable[None]]] = {
    "no further": _no_further,
    "talk": _talk,
    "compaction": _compacted,
    "new conversation": _started_over,
    "restart": _talk,
    "export and import": _copied,
    "next day": _the_next_day,
    "reading": _read_again,
    "search": _searched,
    "flush and learning": _learnt,
    "alert": _alerted,
}


async def leaks(way_in: str, way_on: str, payload: str, blind: bool = False) -> list[str]:
    """Where the text stands unmarked at the end of its way."""
    root = Path(tempfile.mkdtemp(prefix="agentd-"))
    home = Home(root, Blind(BY_DEFAULT.readers) if blind else None)
    try:
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(home.opened())
            if not (home.workspace / NOTE).exists():
                await home.say("main", WORDS)
            session = await WAYS_IN[way_in](home, payload.format(home.token()))
            if way_on == "restart":
                await opened.aclose()
                await opened.enter_async_context(home.opened())
            await WAYS_ON[way_on](home, session)
            return await home.leaks()
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_hostile_text_reaches_no_unmarked_place(way_in: str) -> None:
    for way_on in WAYS_ON:
        assert asyncio.run(leaks(way_in, way_on, PAYLOADS[3])) == [], way_on


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("way_in", "way_on"), [*itertools.product(WAYS_IN, WAYS_ON)])
def test_no_payload_reaches_an_unmarked_place(way_in: str, way_on: str) -> None:
    for payload in PAYLOADS:
        assert asyncio.run(leaks(way_in, way_on, payload)) == [], payload


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("way_in", WAYS_IN)
def test_no_attack_of_others_reaches_an_unmarked_place(way_in: str) -> None:
    if not (texts := attacks()):
        pytest.skip("none of the packages that benchmarks/screening.py names is installed")
    for text, way_on in zip(texts, itertools.cycle(WAYS_ON), strict=False):
        payload = text.replace("{", "{{").replace("}", "}}") + " {}"
        assert asyncio.run(leaks(way_in, way_on, payload)) == [], (way_on, text)


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_with_taint_switched_off_hostile_text_reaches_unmarked_places(way_in: str) -> None:
    way_on = "reading" if way_in == "marked line of a note" else "talk"
    assert asyncio.run(leaks(way_in, way_on, PAYLOADS[0], blind=True)) != []
