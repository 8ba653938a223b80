"""A streamed answer in markdown: its blocks, and the lines they become."""

from __future__ import annotations

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.app.chat.markdown import BlockKind, Blocks, MarkdownBlock, Renderer
from agentd.interfaces.commands.plain import is_plain

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_ANSWER = """\
# Plan
Hello **bold**
and a second line.

- one
  - below
- two

  still two
1. first

```python
def f(x):

    return x
```

| a | b |
|---|---|
| 1 | 2 |

The end."""


def blocks_of(*pieces: str) -> list[MarkdownBlock]:
    blocks = Blocks()
    found = [block for piece in pieces for block in blocks.feed(piece)]
    return [*found, *blocks.finish()]


def shown(text: str, width: int = 40) -> list[str]:
    render = Renderer()
    lines = [line for block in blocks_of(text) for line in render.lines(block, width)]
    # How long the rule below a table's head is differs between releases of rich.
    return [re.sub("─{3,}", "───", _STYLE.sub("", line)).rstrip() for line in lines]


def test_an_answer_falls_into_blocks_that_stand_for_themselves() -> None:
    told = [(block.kind, block.text) for block in blocks_of(_ANSWER)]
    assert told == [
        (BlockKind.TEXT, "# Plan"),
        (BlockKind.TEXT, "Hello **bold**\nand a second line."),
        (BlockKind.TEXT, "- one\n  - below"),
        (BlockKind.TEXT, "- two\n\n  still two"),
        (BlockKind.TEXT, "1. first"),
        (BlockKind.FENCE, "python"),
        (BlockKind.CODE, "def f(x):"),
        (BlockKind.CODE, ""),
        (BlockKind.CODE, "    return x"),
        (BlockKind.FENCE, ""),
        (BlockKind.TEXT, "| a | b |\n|---|---|\n| 1 | 2 |"),
        (BlockKind.TEXT, "The end."),
    ]


@given(st.lists(st.integers(0, len(_ANSWER)), max_size=12))
def test_how_an_answer_is_cut_on_its_way_changes_nothing(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(_ANSWER)]
    pieces = [_ANSWER[a:b] for a, b in itertools.pairwise(places)]
    assert blocks_of(*pieces) == blocks_of(_ANSWER)


def test_lists_tables_and_code_are_laid_out() -> None:
    assert shown(_ANSWER) == [
        "Plan",
        "Hello bold",
        "and a second line.",
        "",
        " • one",
        "    • below",
        " • two",
        "   still two",
        " 1 first",
        "",
        "── python",
        "def f(x):",
        "",
        "    return x",
        "──",
        "",
        " a  b",
        " ───",
        " 1  2",
        "",
        "The end.",
    ]


@pytest.mark.parametrize("width", [20, 33, 150])
def test_words_are_never_broken_and_the_width_is_kept(width: int) -> None:
    words = [f"word{number}" for number in range(60)]
    lines = shown(" ".join(words), width)
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split() == words
    assert len(lines) >= 400 // width


def test_long_words_and_code_lose_nothing() -> None:
    address = "https://example.org/" + "x" * 300
    assert "".join(shown(f"see {address}")).replace(" ", "").removeprefix("see") == address
    code = "print('" + "y" * 300 + "')"
    assert shown(f"```python\n{code}\n```")[1] == code


def test_what_looks_like_html_stays() -> None:
    assert shown("a List<int> and <b>bold</b>\n\n<div>\n") == [
        "a List<int> and <b>bold</b>",
        "",
        "<div>",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a &#27;[31m b &#x202e; c &#8238; &#155;",
        "[x&#x202e;](http://a/&#27;]0;p&#7;)",
        "`\x1b[2J\u202e`",
        "```python\n'\x1b[2J' # \u2066\x9b\n```",
        "| \x1b]0;x\x07 | &#x2067; |\n|---|---|\n| \x9b1m | b |",
        "# \x1b[1m&#x202d;\n> \x08\x1b",
    ],
)
def test_no_word_of_a_model_steers_the_terminal(text: str) -> None:
    lines = "".join(_STYLE.sub("", line) for line in shown(text))
    assert not [c for c in lines if unicodedata.category(c) == "Cc"]
    assert not set(lines) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    ("environ", "plain"),
    [
        ({"TERM": "xterm"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),
        ({"TERM": "dumb"}, True),
        ({}, True),
    ],
)
def test_who_gets_words_alone(environ: dict[str, str], plain: bool) -> None:
    assert is_plain(environ) is plain
