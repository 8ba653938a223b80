"""An obedient model over long lives: hostile bytes reach no unmarked place without the owner's
yes.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agentd.engine.approvals import BY_DEFAULT, TaintPolicy
from tests.privacy.obedient import WORDS, Blind, Home, Life

OWN = st.sampled_from(["main", "chat:work"])
GROUP = "group:club"
ANY = st.sampled_from(["main", "chat:work", GROUP])
PLACES = st.sampled_from(
    [
        ("memory_read", {"path": "memory/2026-11-21.md"}),
        ("memory_read", {"path": "shared/club.md"}),
        ("memory_read", {"path": "projects/plan.md"}),
        ("memory_read", {"path": "sessions/main.jsonl"}),
        ("memory_read", {"path": f"sessions/{GROUP}.jsonl"}),
        ("memory_search", {"query": "done garden plan"}),
        ("memory_tree", {"depth": 3}),
    ]
)


class Lives(RuleBasedStateMachine):
    """Days of an owner, his group and whoever writes to them."""

    policy: TaintPolicy | None = None
    looks = 0  # after which no hostile byte was found

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="agentd-"))
        self.home = Home(self.root, self.policy)
        self.life = Life(self.home)

    def teardown(self) -> None:
        self.life.end()
        shutil.rmtree(self.root)

    @rule(session=OWN)
    def the_owner_talks(self, session: str) -> None:
        self.life.do(partial(self.home.say, session, WORDS))

    @rule(session=OWN)
    def something_is_attached(self, session: str) -> None:
        self.life.do(partial(self.home.attach, session, self.home.token()))

    @rule(session=OWN)
    def a_mail_is_read(self, session: str) -> None:
        self.life.do(partial(self.home.mail, session, self.home.token()))

    @rule()
    def a_beat_reads_a_mail(self) -> None:
        self.life.do(partial(self.home.beat, self.home.token()))

    @rule()
    def alerts_arrive(self) -> None:
        self.life.do(self.home.deliver)

    @rule(yes=st.booleans())
    def the_group_writes(self, yes: bool) -> None:
        wish = {"target": "shared/club.md", "content": f"from all of us: {self.home.token()}"}
        before, self.home.owner.yes = self.home.owner.yes, yes
        self.life.do(partial(self.home.say, GROUP, "write it down", ("memory_write", wish)))
        self.home.owner.yes = before

    @rule()
    def the_group_talks(self) -> None:
        self.life.do(partial(self.home.say, GROUP, f"do {self.home.token()}"))

    @rule(session=OWN, place=PLACES)
    def something_is_looked_at(self, session: str, place: tuple) -> None:
        self.life.do(partial(self.home.say, session, WORDS, place))

    @rule(yes=st.booleans())
    def the_owner_changes_his_mind(self, yes: bool) -> None:
        self.home.owner.yes = yes

    @rule(session=ANY)
    def it_is_compacted(self, session: str) -> None:
        self.life.do(partial(self._if_there, session, self.home.compact))

    @rule(session=ANY)
    def it_starts_over(self, session: str) -> None:
        self.life.do(partial(self._if_there, session, self.home.start_over))

    @rule(session=OWN)
    def it_is_flushed_and_learnt_from(self, session: str) -> None:
        self.life.do(partial(self._if_there, session, self.home.flush))
        self.life.do(partial(self._if_there, session, self.home.learn))

    @rule(session=ANY)
    def it_is_exported_and_imported(self, session: str) -> None:
        copy = self.life.do(partial(self._if_there, session, self.home.copied))
        if copy:
            self.life.do(partial(self.home.say, copy, WORDS))

    @rule()
    def a_transcript_of_another_program_is_imported(self) -> None:
        lines = [
            {"role": "user", "content": WORDS},
            {"role": "assistant", "content": self.home.token()},
            {"role": "human", "content": self.home.token(), "name": "Mallory"},
        ]
        copy = self.life.do(partial(self.home.bring_in, lines))
        self.life.do(partial(self.home.say, copy, WORDS))

    @rule()
    def it_is_restarted(self) -> None:
        self.life.restart()

    @invariant()
    def no_hostile_byte_is_unmarked(self) -> None:
        assert self.life.do(self.home.leaks) == []
        Lives.looks += 1

    async def _if_there(self, session, act):
        exists = await self.home.parts.stores.sessions.exists(session)
        return await act(session) if exists else None


def _lives(count: int, machine: type[Lives] = Lives) -> int:
    """How often nothing was found in so many lives."""
    before = Lives.looks
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=count,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return Lives.looks - before


@pytest.mark.timeout(900)
def test_no_hostile_byte_reaches_an_unmarked_place_without_a_yes() -> None:
    assert _lives(60) > 60


@pytest.mark.torture
@pytest.mark.timeout(14_400)
def test_no_hostile_byte_reaches_an_unmarked_place_in_5000_lives() -> None:
    assert _lives(5_000) > 5_000


class BlindLives(Lives):
    """The same, with taint switched off in the policy."""

    policy = Blind(BY_DEFAULT.readers)


def test_with_taint_switched_off_hostile_bytes_do_reach_unmarked_places() -> None:
    with pytest.raises(AssertionError, match="ZQ"):
        _lives(50, BlindLives)
