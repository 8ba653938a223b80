"""The search of bytes in a folder survives a writer, and can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.finding import holding


def test_what_holds_a_word_is_named_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"\0xxQuastelyy")
    (tmp_path / "two").write_bytes(b"nothing")
    assert holding(tmp_path, b"qUASTEL", b"other") == {"a/one"}


def test_a_folder_that_is_too_empty_is_not_taken_for_clean(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with pytest.raises(AssertionError, match="right place"):
        holding(tmp_path, b"word", least=1)


def test_a_file_that_vanishes_has_everything_read_again(tmp_path: Path) -> None:
    gone = tmp_path / "old"
    kept = tmp_path / "new"
    kept.write_bytes(b"word")
    listings = [[gone], [kept]]
    assert holding(tmp_path, b"word", listed=lambda _: listings.pop(0)) == {"new"}


def test_a_folder_in_which_files_always_vanish_is_not_taken_for_clean(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="vanished"):
        holding(tmp_path, b"word", listed=lambda _: [tmp_path / "old"])
