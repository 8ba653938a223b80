"""Prompt text from files."""

from hypothesis import given
from hypothesis import strategies as st

from agentd.workspace.injection import PromptRoom, Section, fence_data, sections

_BIG = PromptRoom(10_000, 10_000)


@given(st.text(alphabet="`a\n ", min_size=1, max_size=60))
def test_no_text_closes_its_own_fence(text: str) -> None:
    head, opening, *inside, closing = fence_data(text).split("\n")
    assert head
    assert opening == f"{closing}text"
    assert closing.strip("`") == ""
    assert "\n".join(inside) == text
    assert all(closing not in line for line in inside)


def test_a_cut_prefers_the_start_of_a_section() -> None:
    text = "# one\n" + "a " * 45 + "\n# two\n" + "b " * 50
    [shown], [cut], _ = sections([Section("x.md", "## x.md", text)], PromptRoom(110, 1000))
    assert "# two" not in shown
    assert "from=3)" in shown
    assert cut.kept == len("# one\n" + "a " * 45) - 1


def test_a_cut_inside_a_code_block_closes_it_before_the_marker() -> None:
    text = "intro\n```\n" + "code\n" * 100
    [shown], _, _ = sections([Section("x.md", "## x.md", text)], PromptRoom(200, 1000))
    assert "\n```\n[CUT: " in shown


@given(st.text(max_size=400), st.integers(1, 300))
def test_whatever_is_kept_is_a_beginning_of_the_text(text: str, limit: int) -> None:
    texts, cuts, left = sections([Section("x", "##", text)], PromptRoom(limit, limit))
    body = text.lstrip("\ufeff").strip()
    assert bool(texts) == bool(body)
    assert bool(cuts) == (len(body) > limit)
    assert 0 <= left.total <= limit
    for cut in cuts:
        assert cut.kept <= limit
        assert texts[0].startswith(f"##\n{body[: cut.kept]}".rstrip("\n"))


def test_a_byte_order_mark_and_blank_files_leave_no_trace() -> None:
    items = [
        Section("a", "## a", "\ufeff"),
        Section("b", "## b", "\ufeffhi"),
        Section("c", "## c", "\n "),
    ]
    assert sections(items, _BIG)[0] == ["## b\nhi"]
