"""The power is cut at any moment, and a disk keeps what was synced, with some of the rest: nothing
that was acknowledged is lost, doubled or altered, nothing that was erased comes back, and no alarm
is false.

The controls take away the syncs on which that rests, and harm what is left.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from random import Random

import pytest

from tests.e2e.disk import ALL, COMPILER, NOTHING, Fate
from tests.e2e.harness import Home, ModelServer
from tests.e2e.power_cuts import Campaign, Known, Talk, Verdict, recorded
from tests.e2e.test_damage import spoil
from tests.e2e.test_days_of_kills import with_a_note_twice, with_other_bytes, without_a_message

HOMES, LIVES, CUTS = 2, 2, 10
MANY, LONG, OFTEN = 20, 5, 20
MOMENTS = 6  # of one start

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: cc or gcc")


def check(verdict: Verdict, cuts: int) -> None:
    print(verdict)
    assert verdict.found == []
    assert verdict.cuts == cuts
    assert verdict.promises > cuts, "so little was acknowledged that nothing was shown"
    assert len(verdict.given_up) <= cuts / 20


@needs_compiler
@pytest.mark.parametrize("seed", range(HOMES))
async def test_some_power_cuts_lose_nothing(model: ModelServer, seed: int) -> None:
    check(await Campaign(model, seed).run(LIVES, CUTS), LIVES * CUTS)


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(1000, 1000 + MANY))
async def test_many_power_cuts_lose_nothing(model: ModelServer, seed: int) -> None:
    check(await Campaign(model, seed).run(LONG, OFTEN), LONG * OFTEN)


async def everything(talk: Talk) -> None:
    """One of each kind, to the end."""
    (deleted,) = await talk.deletion()
    await deleted
    for one in (talk.message, talk.picture, talk.note, talk.fact, talk.job, talk.beat):
        await talk.ask(one())


@pytest.fixture
def campaign(model: ModelServer) -> Campaign:
    if COMPILER is None:
        pytest.skip("needs a C compiler: cc or gcc")
    return Campaign(model, 7)


def are_kept(*ends: str) -> Callable[[str], bool]:
    """Tells that syncs of files with other ends of their names are kept."""
    return lambda path: not path.endswith(ends)


async def test_what_is_acknowledged_is_there_when_the_power_goes_that_moment(
    campaign: Campaign,
) -> None:
    async def changes(talk: Talk) -> None:
        for one in (talk.note, talk.fact, talk.message, talk.picture, talk.job):
            await talk.ask(one())

    life = await campaign.first(changes)
    for cut in life.acknowledgements():
        assert await campaign.judge(life, cut, NOTHING) == []


async def test_what_was_erased_does_not_come_back_in_a_log_whose_cut_was_lost(
    campaign: Campaign,
) -> None:
    life = await campaign.first(everything)
    erased = next(end for end in life.acknowledgements() if life.known(end).gone)
    assert await campaign.judge(life, erased, Fate(bytes=0.0, names=1.0)) == []


async def nothing(talk: Talk) -> None:
    """It only starts."""


def without_the_end_of_the_log(home: Home) -> None:
    log = home.root / "state" / "state.db-wal"
    log.write_bytes(log.read_bytes()[:-20_000])


def with_noise(home: Home) -> None:
    spoil(home.root / "state" / "state.db", "charges")


@pytest.mark.parametrize(
    ("harm", "code"),
    [(without_the_end_of_the_log, "acknowledged_lost"), (with_noise, "state_salvaged")],
)
async def test_what_a_start_has_found_lost_is_told_though_the_power_goes_then(
    campaign: Campaign, harm: Callable[[Home], None], code: str
) -> None:
    life = await campaign.first(everything)
    async with campaign.a_home() as home:
        life.cut(life.acknowledgements()[-1]).write(home.root, ALL)
        harm(home)
        start = await recorded(home, Random(1), Known(), count(100), nothing)
    for cut in range(0, len(start.calls), max(1, len(start.calls) // MOMENTS)):
        found = await campaign.judge(start, cut, NOTHING)
        assert code in "\n".join(found), (cut, len(start.calls), found)


LOST_SYNCS = {
    "of the log, as with synchronous=NORMAL": (are_kept("-wal"), "message '.*' is lost"),
    "of files that take the place of others": (are_kept(".tmp"), "note '.*' is lost"),
    "of the workspace's names": (are_kept("/memory"), "note '.*' is lost"),
    "of the state's names": (are_kept("/state"), "message '.*' is lost"),
    "of everything": (lambda _: False, "message '.*' is lost"),
}


@pytest.mark.timeout(300)
async def test_a_disk_that_forgets_syncs_is_seen_to_lose_what_was_acknowledged(
    campaign: Campaign,
) -> None:
    life = await campaign.first(everything)
    last = life.acknowledgements()[-1]
    for name, (syncs, words) in LOST_SYNCS.items():
        found = await campaign.judge(life, last, NOTHING, syncs=syncs)
        assert re.search(words, "\n".join(found)), (name, found)
    assert await campaign.judge(life, last, NOTHING) == []


def in_state(change: str) -> Callable[[Home], None]:
    """Changes a row of the database, or takes it away."""

    def harm(home: Home) -> None:
        with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
            assert db.execute(change).rowcount == 1

    return harm


def without_a_fact(home: Home) -> None:
    page = home.workspace / "memory" / "facts.md"
    page.write_text(re.sub(r"- The code of .*\n", "", page.read_text("utf-8")), "utf-8")


def with_what_was_erased(home: Home) -> None:
    (home.workspace / "memory" / "2026-01-01.md").write_text("secret1x\n", "utf-8")


def with_a_stray(home: Home) -> None:
    (home.root / "state" / "key.part").touch()


def with_zeros(home: Home) -> None:
    for note in (home.workspace / "memory").glob("2*.md"):
        note.write_bytes(note.read_bytes() + bytes(512))


HARMS: dict[Callable[[Home], None], str] = {
    without_a_message: "message '.*' is lost|picture '.*' is lost",
    without_the_end_of_the_log: "acknowledged_lost",
    in_state(
        "UPDATE rows SET blocks = replace(blocks, 'w2a', 'w9a') WHERE blocks LIKE '%three w2a%'"
    ): "row_damaged",
    in_state("DELETE FROM jobs"): "job 'ring.*' is lost",
    in_state("DELETE FROM beats"): "beat '.*' is lost",
    with_a_note_twice: "m2 was done twice",
    without_a_fact: "fact '.*' is lost",
    with_other_bytes: "has other bytes",
    with_what_was_erased: "erased, and still there",
    with_a_stray: "temporary files were left",
    with_zeros: "zeros in a note",
}


@pytest.mark.timeout(300)
async def test_what_is_lost_altered_or_left_would_be_found(campaign: Campaign) -> None:
    life = await campaign.first(everything)
    last = life.acknowledgements()[-1]
    for harm, words in HARMS.items():
        found = await campaign.judge(life, last, ALL, harm=harm)
        assert re.search(words, "\n".join(found)), (harm, words, found)
    assert await campaign.judge(life, last, ALL) == []
