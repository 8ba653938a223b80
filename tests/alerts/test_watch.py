"""Somebody outside of the daemon misses the heartbeat, and says so once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentd.automation.alerts.watch import Watch
from agentd.automation.heartbeat.lifesign import LifeSign
from agentd.core.alert import Alert
from agentd.core.errors import AgentdError
from agentd.testing import FakeClock

HALF = timedelta(minutes=30)


class Pager:
    """A sink that fails while it is off."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_off = False
        self.taken: list[str] = []

    async def send(self, alert: Alert) -> None:
        if self.is_off:
            raise AgentdError(f"{self.name} is off")
        self.taken.append(alert.told)


class Post:
    """A watch with two pagers, and the sign that a daemon has just left."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.one, self.two = Pager("one"), Pager("two")
        self.journal = folder / "watch.json"
        self.sign = self.fresh()

    def fresh(self) -> LifeSign:
        now = self.clock.now()
        return LifeSign(now, self.clock.monotonic(), now + HALF, HALF)

    async def look(self, failure: str = "") -> str:
        """Each look is a process of its own."""
        watch = Watch((self.one, self.two), self.journal, self.clock)
        return (await watch.look(self.sign, failure)).state


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


async def test_a_heartbeat_that_comes_is_no_news(post: Post) -> None:
    for _ in range(10):
        await post.clock.advance(1500)
        assert await post.look() == "fine"
        post.sign = post.fresh()
    assert post.one.taken == []
    assert not post.journal.exists()


async def test_none_for_twice_the_interval_is_told_once_a_day(post: Post) -> None:
    await post.clock.advance(3600)
    assert await post.look() == "fine"
    await post.clock.advance(1)
    for _ in range(4 * 23):
        assert await post.look() == "missed"
        await post.clock.advance(900)
    assert len(post.one.taken) == len(post.two.taken) == 1
    assert post.one.taken[0].startswith("No heartbeat of agentd since the one due at ")
    await post.clock.advance(3600)
    await post.look()
    assert len(post.one.taken) == 2


async def test_a_pager_that_was_off_is_tried_again_and_the_other_not(post: Post) -> None:
    post.two.is_off = True
    await post.clock.advance(3601)
    watch = Watch((post.one, post.two), post.journal, post.clock)
    look = await watch.look(post.sign)
    assert (look.sent, look.failed) == (("one",), {"two": "two is off"})
    post.two.is_off = False
    await post.clock.advance(900)
    await post.look()
    assert (len(post.one.taken), len(post.two.taken)) == (1, 1)


async def test_a_service_that_failed_is_told_at_once_and_its_silence_not_again(post: Post) -> None:
    assert await post.look("agentd.service ended with exit-code (1)") == "failed"
    assert "agentd.service ended with exit-code (1)" in post.one.taken[0]
    await post.clock.advance(7200)
    assert await post.look() == "missed"
    assert len(post.one.taken) == 1


async def test_its_return_is_told_to_those_who_were_alarmed(post: Post) -> None:
    post.two.is_off = True
    await post.clock.advance(3601)
    await post.look()
    post.sign, post.two.is_off = post.fresh(), False
    for _ in range(2):
        assert await post.look() == "fine"
    assert post.one.taken[1:] == ["the heartbeat of agentd is back"]
    assert post.two.taken == []
    await post.clock.advance(3601)
    await post.look()
    assert len(post.one.taken) == 3, "the next death is another one"


@pytest.mark.parametrize("change", [{"is_last": True}, {"due": None}])
async def test_what_was_stopped_or_is_off_is_not_missed(
    post: Post, change: dict[str, bool]
) -> None:
    post.sign = replace(post.sign, **change)
    await post.clock.advance(86400)
    assert await post.look() in {"stopped", "off"}
    assert post.one.taken == []


async def test_where_no_daemon_has_run_nobody_is_missed(post: Post) -> None:
    watch = Watch((post.one,), post.journal, post.clock)
    assert (await watch.look(None)).state == "unknown"


async def test_a_journal_that_is_nonsense_has_told_nothing(post: Post) -> None:
    post.journal.write_text('{"sent": 3')
    await post.clock.advance(3601)
    await post.look()
    assert len(post.one.taken) == 1


async def test_what_cannot_be_noted_is_an_error(post: Post) -> None:
    post.journal = post.journal.parent / "gone" / "watch.json"
    await post.clock.advance(3601)
    with pytest.raises(AgentdError, match="cannot be written"):
        await post.look()


async def test_what_a_clock_that_was_ahead_has_told_keeps_nothing_back(post: Post) -> None:
    year = timedelta(days=365)
    post.clock.jump(year)
    await post.look("killed by SIGKILL")
    post.clock.jump(-year)
    for _ in range(3):
        await post.look("killed by SIGKILL")
    assert len(post.one.taken) == len(post.two.taken) == 2
