"""What looks after a daemon, over its real parts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.assembly.ground import Ground
from agentd.assembly.parts import Parts, open_parts
from agentd.assembly.upkeep import Upkeep
from agentd.config import Config
from agentd.domain.job import Cron, NewJob
from agentd.engine.budget import Budget
from agentd.logs import OpenLog
from agentd.paths import daemon_places
from agentd.redaction import Redactor
from agentd.server.clients import Clients
from agentd.testing import Answers, FakeClock, RecordingSink

LOG = OpenLog(Redactor(), None)


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    config = Config.model_validate({"workspace": {"archive_after_days": 30}})
    environ = {"AGENTD_HOME": str(tmp_path)}
    ground = Ground(config, daemon_places(environ), FakeClock(), environ, Budget(config.budget))
    opened = open_parts(ground, Clients(), Answers(), shown=RecordingSink(), output=LOG)
    async with opened as parts:
        yield parts


async def complaint(parts: Parts) -> str:
    """What doctor says of the parts that complain; "" if none does."""
    answer = await Upkeep(parts, LOG).routes()["_agentd/doctor"]({}, None)
    (found,) = [check for check in answer["checks"] if check["code"] == "parts"]
    return "" if found["level"] == "ok" else str(found["text"])


async def test_doctor_names_a_job_that_no_longer_runs(parts: Parts) -> None:
    assert await complaint(parts) == ""
    lost = NewJob("water the plants", Cron("0 9 * * *", "Atlantis/Poseidonis"))
    await parts.stores.jobs.add(lost, datetime(2100, 1, 1, tzinfo=UTC), most=9, key="")
    await parts.schedule.jobs.lines["reminders"].tick()
    assert "no longer runs" in await complaint(parts)


async def test_doctor_names_a_note_that_cannot_be_archived(parts: Parts) -> None:
    folder = parts.ground.workspace / "memory"
    there = folder / "archive/2025/2025-01-01.md"
    there.parent.mkdir(parents=True)
    there.write_text("another one")
    (folder / "2025-01-01.md").write_text("old")
    os.utime(folder / "2025-01-01.md", (0, 0))
    await parts.memory.archiving.tidy()
    assert "is there already" in await complaint(parts)
