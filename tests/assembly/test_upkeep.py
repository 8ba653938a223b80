"""What looks after a daemon, over its real parts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentd.app.application import App
from agentd.app.assembly.parts import Parts, open_parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.upkeep import Upkeep
from agentd.app.config import Config
from agentd.app.logs import OpenLog
from agentd.app.loop_delay import LoopMonitor
from agentd.core.errors import ConfigError
from agentd.core.job import Cron, NewJob
from agentd.core.paths import daemon_places
from agentd.core.redaction import Redactor
from agentd.engine.budget import Budget
from agentd.engine.workers import PAUSES
from agentd.interfaces.acp.peer import Clients
from agentd.testing import Answers, FakeClock, RecordingSink

LOG = OpenLog(Redactor(), None)


@asynccontextmanager
async def house(home: Path, **tables: dict[str, Any]) -> AsyncIterator[Parts]:
    """The parts of a daemon with these tables of the configuration. Its clock stands still, and so
    an embedder that is starting would be waited for without end.
    """
    config = Config.model_validate({"memory_search": {"provider": "none"}} | tables)
    environ = {"AGENTD_HOME": str(home)}
    runtime = RuntimeContext(
        config, daemon_places(environ), FakeClock(), environ, Budget(config.budget)
    )
    opened = open_parts(runtime, Clients(), Answers(), shown=RecordingSink(), output=LOG)
    async with opened as parts:
        yield parts


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with house(tmp_path, workspace={"archive_after_days": 30}) as parts:
        yield parts


async def check(parts: Parts, code: str) -> dict[str, Any]:
    """What doctor says under that code."""
    answer = await Upkeep(parts, LOG).routes()["_agentd/doctor"]({}, None)
    (found,) = [check for check in answer["checks"] if check["code"] == code]
    return dict(found)


async def complaint(parts: Parts) -> str:
    """What doctor says of the parts that complain; "" if none does."""
    found = await check(parts, "parts")
    return "" if found["level"] == "ok" else str(found["text"])


async def test_a_reload_looks_at_the_configuration_as_a_start_does(
    parts: Parts, tmp_path: Path
) -> None:
    file = parts.runtime.places.config_file
    file.write_text("[log]\nlevel = 'debug'\n")
    file.chmod(0o666)
    reload = Upkeep(parts, LOG).routes()["_agentd/reload"]
    if os.getuid() == 0:
        os.chown(file, 4242, 4242)
        with pytest.raises(ConfigError, match="belongs to"):
            await reload({}, None)
        os.chown(file, 0, 0)
        file.chmod(0o666)
    file.write_text("[log]\nlevel = 'nonsense'\n")
    with pytest.raises(ConfigError, match="level"):
        await reload({}, None)
    assert file.stat().st_mode & 0o777 == 0o600


async def test_doctor_names_a_job_that_no_longer_runs(parts: Parts) -> None:
    assert await complaint(parts) == ""
    lost = NewJob("water the plants", Cron("0 9 * * *", "Atlantis/Poseidonis"))
    await parts.stores.jobs.add(lost, datetime(2100, 1, 1, tzinfo=UTC), most=9, key="")
    await parts.schedule.jobs.lines["reminders"].tick()
    assert "no longer runs" in await complaint(parts)


async def test_doctor_names_a_note_that_cannot_be_archived(parts: Parts) -> None:
    folder = parts.runtime.workspace / "memory"
    there = folder / "archive/2025/2025-01-01.md"
    there.parent.mkdir(parents=True)
    there.write_text("another one")
    (folder / "2025-01-01.md").write_text("old")
    os.utime(folder / "2025-01-01.md", (0, 0))
    await parts.memory.archiving.tidy()
    assert "is there already" in await complaint(parts)


@pytest.mark.parametrize(
    ("limits", "kind", "level", "words"),
    [
        ({"daily_usd": 0.01}, "openai", "fail", "[budget] daily_usd = 0.01 would be passed"),
        ({"heartbeat_daily_tokens": 50}, "openai", "warn", "heartbeat_daily_tokens = 50 would be"),
        ({"daily_usd": 100.0}, "openai", "ok", "no limit of tokens or costs is reached"),
        (
            {"daily_usd": 0.01},
            "offline",
            "ok",
            "no limit of tokens or costs is reached",
        ),  # costs nothing
    ],
)
async def test_doctor_tells_a_limit_that_every_call_would_pass(
    tmp_path: Path, limits: dict[str, float], kind: str, level: str, words: str
) -> None:
    budget = {**limits, "prices": {"m": {"input": 3.0, "output": 15.0}}}
    provider = {"kind": kind, "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    async with house(tmp_path, budget=budget, provider=provider) as parts:
        found = await check(parts, "budget")
        assert found["level"] == level
        assert words in found["text"]


async def test_work_that_breaks_is_told_and_started_again_and_ends_nothing_else(
    parts: Parts,
) -> None:
    begun: list[float] = []
    clock = parts.runtime.clock
    assert isinstance(clock, FakeClock)
    others = asyncio.Event()

    async def breaking() -> None:
        begun.append(clock.monotonic())
        if len(begun) < 3:
            raise KeyError("a flaw")
        await asyncio.Event().wait()

    async def other() -> None:
        await others.wait()

    work = {"alerts": (breaking,), "memory": (other,)}
    app = App(parts, work, Upkeep(parts, LOG).hangup, LoopMonitor(clock))
    serving = asyncio.create_task(app.serve())
    await clock.settle()
    assert not serving.done()
    assert "part alerts" in await complaint(parts)
    assert [p.code for p in parts.problems()].count("background_work_broke") == 1
    await clock.advance(PAUSES[0])
    await clock.advance(PAUSES[1])
    assert [at - begun[0] for at in begun] == [0, PAUSES[0], PAUSES[0] + PAUSES[1]]
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
