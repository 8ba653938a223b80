"""Foreign files are read if they are files, and as far as they fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentd.app.cli.other_agents import AgentFolder
from agentd.app.cli.transcripts import read_files, read_regular
from agentd.core.errors import InvalidRequest


def test_a_regular_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_regular(tmp_path / "a", 5) == b"12345"
    with pytest.raises(InvalidRequest, match="larger than 4 bytes"):
        read_regular(tmp_path / "a", 4)


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "link to zero", "absent"])
def test_what_is_no_file_is_refused_and_nobody_waits(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to zero").symlink_to("/dev/zero")
    for read in (lambda path: read_regular(path, 100), lambda path: read_files([path])):
        with pytest.raises(InvalidRequest) as error:
            read(tmp_path / name)
        assert error.value.cure
        assert error.value.message.count(str(tmp_path / name)) == 1


def test_a_file_without_size_is_read_no_further_than_the_limit() -> None:
    with pytest.raises(InvalidRequest, match="larger"):
        read_regular(Path("/proc/self/maps"), 100)


def test_a_line_nested_beyond_reason_is_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with pytest.raises(InvalidRequest, match="line 1: not a JSON object"):
        read_files([tmp_path / "deep.jsonl"])


def test_nothing_behind_a_link_of_a_foreign_home_belongs_to_it(tmp_path: Path) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    (outside / "sessions").mkdir(parents=True)
    (outside / "secret.md").write_text("secret")
    (outside / "sessions" / "s.jsonl").write_text("{}")
    (outside / "openclaw.json").write_text("{}")
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "own.md").write_text("own")
    (home / "workspace" / "memory").symlink_to(outside)
    (home / "agents").symlink_to(outside)
    (home / "sessions").symlink_to(outside / "sessions")
    (home / "openclaw.json").symlink_to(outside / "openclaw.json")
    house = AgentFolder.of("openclaw", home)
    assert [path.name for path in house.notes()] == ["own.md"]
    assert house.transcripts() == []
    assert house.settings() == []
