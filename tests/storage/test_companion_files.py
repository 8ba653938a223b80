"""Configuration, keys and versions of files that are gone or emptied at a start."""

from __future__ import annotations

import hashlib
import os
import shutil
from datetime import UTC, datetime

import pytest

from agentd.core.paths import daemon_places
from agentd.storage.companion_files import (
    check_before_new,
    check_companions,
    note_of,
    record_companions,
)
from agentd.storage.damages import Damages
from agentd.storage.keys import load_key

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)


@pytest.fixture
def places(tmp_path):
    """A home after its first start."""
    found = daemon_places({"AGENTD_HOME": str(tmp_path)})
    found.config_file.write_text("[log]\nkeep = 7\n")
    found.state_dir.mkdir()
    check_companions(found, NOW)
    load_key(found.facts_key)
    home = found.versions / "ab"
    home.mkdir(parents=True)
    (home / "log").write_text("[]")
    (home / hashlib.sha256(b"x").hexdigest()).write_text("x")
    (home / hashlib.sha256(b"").hexdigest()).write_text("")
    record_companions(found)
    return found


def codes(places):
    return [problem.code for problem in Damages(places.database).problems()]


def test_nothing_is_told_while_all_is_there(places):
    for _ in range(2):
        check_companions(places, NOW)
    assert codes(places) == []
    places.config_file.write_text("[log]\nkeep = 8\n")
    check_companions(places, NOW)
    assert codes(places) == []


@pytest.mark.parametrize("how", ["gone", "emptied"])
@pytest.mark.parametrize("what", ["config", "facts_key", "versions"])
def test_what_is_gone_or_emptied_is_told_once(places, what, how):
    path = {
        "config": places.config_file,
        "facts_key": places.facts_key,
        "versions": places.versions / "ab" / "log",
    }[what]
    if how == "emptied":
        path.write_bytes(b"")
    elif what == "versions":
        shutil.rmtree(places.versions)
    else:
        path.unlink()
    record_companions(places)  # the end of a daemon that had it open does not hide it
    for _ in range(2):
        check_companions(places, NOW)
        load_key(places.facts_key)
        record_companions(places)
    assert codes(places) == [f"{what}_lost"]
    (damage,) = Damages(places.database).all()
    assert str(damage.folder) in damage.problem.cure
    shutil.rmtree(damage.folder)
    if not (what == "versions" and how == "emptied"):
        check_companions(places, NOW)
        assert codes(places) == []


def test_whoever_takes_the_last_setting_out_is_told_of_no_damage(places):
    places.config_file.write_text("# nothing differs from the defaults\n")
    check_companions(places, NOW)
    record_companions(places)
    places.config_file.write_text("")
    check_companions(places, NOW)
    places.config_file.unlink()
    check_companions(places, NOW)
    assert Damages(places.database).all() == ()
    assert list(places.state_dir.glob("*damaged*")) == []


def test_a_configuration_that_has_gone_is_told_before_a_new_one_hides_it(places):
    text = places.config_file.read_text()
    check_before_new(places, NOW)
    assert codes(places) == []
    places.config_file.unlink()
    for _ in range(2):
        check_before_new(places, NOW)
    places.config_file.write_text("# as `agentd up` writes it where there is none\n")
    for _ in range(2):
        check_companions(places, NOW)
    assert codes(places) == ["config_lost"]
    places.config_file.write_text(text)
    check_companions(places, NOW)
    assert codes(places) == []


@pytest.mark.parametrize("how", ["gone", "emptied"])
def test_a_configuration_that_was_put_back_is_told_no_longer(places, how):
    text = places.config_file.read_text()
    places.config_file.unlink() if how == "gone" else places.config_file.write_text("")
    check_companions(places, NOW)
    assert codes(places) == ["config_lost"]
    places.config_file.write_text(text)
    assert codes(places) == ["config_lost"]
    record_companions(places)  # by the daemon that ends, after it was put back
    check_companions(places, NOW)
    assert codes(places) == []


def test_a_content_that_was_emptied_is_told_and_one_of_nothing_is_not(places):
    (places.versions / "ab" / hashlib.sha256(b"x").hexdigest()).write_bytes(b"")
    check_companions(places, NOW)
    assert codes(places) == ["versions_lost"]


def test_another_key_in_the_place_of_ours_is_told(places):
    places.facts_key.write_bytes(bytes(32))
    check_companions(places, NOW)
    assert codes(places) == ["facts_key_lost"]
    assert not places.facts_key.exists()
    (damage,) = Damages(places.database).all()
    assert (damage.folder / "facts.key").read_bytes() == bytes(32)


@pytest.mark.parametrize("odd", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_record_that_is_no_regular_file_is_made_anew(places, odd):
    check_companions(places, NOW)
    record = note_of(places.state_dir)
    record.unlink()
    odd(record)
    check_companions(places, NOW)
    assert record.is_file()
    assert not record.is_symlink()
