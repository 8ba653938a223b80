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
    class Moving(type(tmp_path)):  # type: ignore[misc]
        """A folder whose file gets another name after it was listed for the first time."""

        moved = False

        def rglob(self, pattern: str):
            listed = list(super().rglob(pattern))
            if not Moving.moved:
                Moving.moved = True
                (tmp_path / "old").rename(tmp_path / "new")
            return (_Listed(path) for path in listed)

    class _Listed(type(tmp_path)):  # type: ignore[misc]
        def is_file(self) -> bool:
            return True

    (tmp_path / "old").write_bytes(b"word")
    assert holding(Moving(tmp_path), b"word") == {"new"}
