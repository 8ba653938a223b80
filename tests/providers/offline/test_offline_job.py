from __future__ import annotations

from importlib.resources import files
from zoneinfo import ZoneInfo

from agentd.core.message import user
from agentd.core.prompt import Prompt
from agentd.core.turn import Origin
from agentd.engine.background_turn import compose
from agentd.testing import FakeClock

SHIPPED = (files("agentd.core") / "prompts" / "job.md").read_text("utf-8")


async def test_a_jobs_question_is_told_in_its_own_words(answer):
    job = "what is due?\n\nCurrent time: is a heading\n\n## Job\n\nthe end"
    text = compose(SHIPPED, "Job", job, FakeClock().now(), ZoneInfo("UTC"))
    last = await answer(Prompt((), (user(text),), origin=Origin.JOB))
    assert not last.message.tool_uses
    assert last.message.text == job


async def test_a_prompt_without_a_job_is_quiet(answer):
    last = await answer(Prompt((), (user("hello"),), origin=Origin.JOB))
    assert last.message.text == "HEARTBEAT_OK"
