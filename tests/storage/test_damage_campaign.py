"""State databases and their logs damaged in every way: nothing is lost in silence, and all that can
be read is salvaged.
"""

from __future__ import annotations

import pytest

from tests.storage.damaged import SQLITE, a_home, campaign

FEW, MANY = 30, 500


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_young", [False, True])
async def test_some_damage_loses_nothing_in_silence_and_salvages_what_can_be_read(
    tmp_path, is_young
):
    verdict = await campaign(await a_home(tmp_path, is_young=is_young), range(FEW))
    print(verdict)
    assert verdict.failed == []
    assert verdict.silent == []
    assert verdict.unsalvaged == []
    assert verdict.rounds == FEW
    if not SQLITE:
        pytest.skip("salvage was not held against sqlite3's own: no sqlite3 program can .recover")
    assert verdict.independent > FEW


@pytest.mark.timeout(600)
async def test_the_same_damage_without_the_proofs_is_seen_to_lose_rows_in_silence(tmp_path):
    verdict = await campaign(await a_home(tmp_path), range(FEW), proofs=False)
    print(verdict)
    assert len(verdict.silent) > FEW // 10


@pytest.mark.torture
@pytest.mark.timeout(7200)
async def test_much_damage_loses_nothing_in_silence_and_salvages_what_can_be_read(tmp_path):
    assert SQLITE, "a sqlite3 program that can .recover is needed: name it with AGENTD_SQLITE3"
    verdict = await campaign(await a_home(tmp_path), range(1000, 1000 + MANY))
    print(verdict)
    assert verdict.failed == []
    assert verdict.silent == []
    assert verdict.unsalvaged == []
    assert verdict.independent > MANY
