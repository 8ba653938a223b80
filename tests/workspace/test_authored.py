"""Which lines a change brought, in the time that what was added takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentd.core.workspace import Author
from agentd.workspace.authored import Authored, added_lines, lines_of
from agentd.workspace.folder import Folder
from tests.growth import QUADRATIC, growth

MODEL = Author("model")
LINES = st.lists(st.sampled_from([b"", b"a", b" a", b"a b", b"- a", b"-", b"b", b"ba"]), max_size=6)


@given(LINES, LINES)
def test_what_an_append_brought_is_what_a_comparison_of_all_lines_finds(before, after) -> None:
    old = b"".join(line + b"\n" for line in before)
    new = old + b"\n".join(after)
    known = {line.strip() for line in before}
    assert added_lines(old, new, MODEL) == [
        line for line in lines_of(new) if line.strip() not in known
    ]


def test_many_lines_behind_many_take_no_time_of_both_multiplied() -> None:
    def work(size: int) -> None:
        old = b"".join(b"abc%06d\n" % n for n in range(2 * size))
        new = old + b"".join(b"%x\n" % n for n in range(size))
        assert len(added_lines(old, new, MODEL)) == size

    assert growth(work, 2_000) < QUADRATIC


def test_a_record_goes_on_after_a_part_of_a_mark(tmp_path) -> None:
    record = Authored(Folder(tmp_path))
    record.note("home", [b"one"])
    with (tmp_path / "home" / "lines").open("ab") as file:
        file.write(b"\x01\x02")
    record.note("home", [b"two"])
    assert record.own("home", [b"one", b"two", b"three"]) == [True, True, False]


def test_a_record_grows_in_place(tmp_path) -> None:
    record, file = Authored(Folder(tmp_path)), tmp_path / "home" / "lines"
    record.note("home", [b"one"])
    inode = file.stat().st_ino
    record.note("home", [b"one", b"two"])
    assert (file.stat().st_ino, file.stat().st_size) == (inode, 16)
