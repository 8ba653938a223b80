from __future__ import annotations

import pytest

from agentd.core.errors import StorageError
from agentd.storage.keys import KEY_BYTES, load_key


def test_a_key_is_made_once_for_the_owner_alone(tmp_path):
    file = tmp_path / "state" / "facts.key"
    key = load_key(file)
    assert len(key) == KEY_BYTES
    assert load_key(file) == key
    assert load_key(tmp_path / "other.key") != key
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_a_crash_left_half_made_is_no_key(tmp_path):
    (tmp_path / "facts.key.part").write_bytes(b"half")
    assert len(load_key(tmp_path / "facts.key")) == KEY_BYTES
    assert [path.name for path in tmp_path.iterdir()] == ["facts.key"]


def test_a_damaged_key_is_told_and_not_replaced(tmp_path):
    file = tmp_path / "facts.key"
    file.write_bytes(b"short")
    with pytest.raises(StorageError, match="damaged"):
        load_key(file)
    assert file.read_bytes() == b"short"


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StorageError, match="cannot be kept"):
        load_key(tmp_path / "state" / "facts.key")
