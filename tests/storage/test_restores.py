"""A daemon does not work where a restore was cut in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentd.core.errors import StateMissing
from agentd.storage import restores


def test_what_was_unpacked_and_not_moved_is_litter_and_no_reason_to_refuse(tmp_path: Path) -> None:
    stage = restores.new_stage(tmp_path, "20260101T000000")
    (stage / "workspace").mkdir()
    restores.refuse_half(tmp_path)
    restores.clear(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_where_things_were_moved_and_not_all_of_them_no_daemon_starts(tmp_path: Path) -> None:
    stage = restores.new_stage(tmp_path, "20260101T000000")
    restores.begin_moving(stage)
    restores.clear(tmp_path)
    restores.new_stage(tmp_path, "20260101T000000")  # another that fails before it moves anything
    restores.clear(tmp_path)
    with pytest.raises(StateMissing, match="cut before it was complete") as refused:
        restores.refuse_half(tmp_path)
    assert refused.value.exit_code == 78
    assert str(stage) in refused.value.cure
    restores.end_moving(tmp_path)
    restores.refuse_half(tmp_path)
    restores.clear(tmp_path)
    assert list(tmp_path.iterdir()) == []
