"""What a question shows of a change: all of it, in pages where it is long. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Any

from agentd.domain.tool import Approval
from agentd.screening.spelled import spelled

Content = dict[str, Any]

_LARGEST_DIFF = 150_000  # characters of both sides that surely fit a frame
_PAGE = 40_000  # characters
_AROUND = 3  # unchanged lines before and after a change


def size(approval: Approval) -> int:
    """How many characters there are to look at."""
    return len(approval.old_text or "") + len(approval.new_text or "")


def pages(approval: Approval, root: PurePath) -> list[list[Content]]:
    """The contents of the questions to put, one after the other; the yes to the last is the one that
    counts. Together they hold every character that would be written, and what characters hide or
    pass for others, spelled out.
    """
    warnings = [_text(spelled(words)) for words in approval.warnings]
    if approval.new_text is None:
        return [warnings]
    if not approval.path:
        shown = _paged(spelled(approval.new_text))
    elif size(approval) > _LARGEST_DIFF:
        shown = _paged("\n".join(map(spelled, _changed_lines(approval))))
    else:
        return [[*warnings, _diff(approval, root), *_disguises(approval)]]
    first, *others = [[_text(page)] for page in shown]
    return [[*warnings, *first], *others]


def _diff(approval: Approval, root: PurePath) -> Content:
    diff = {"type": "diff", "path": str(root / approval.path), "newText": approval.new_text}
    if approval.old_text is not None:
        diff["oldText"] = approval.old_text
    return diff


def _disguises(approval: Approval) -> Iterator[Content]:
    """The changed lines in which something is not what it looks like."""
    lines = [(line, spelled(line)) for line in _changed_lines(approval)]
    odd = [shown for line, shown in lines if line != shown]
    if odd:
        head = "These lines hold characters that are hidden or pass for others, here spelled out:"
        yield from (_text(page) for page in _paged("\n".join([head, *odd])))


def _changed_lines(approval: Approval) -> list[str]:
    """A unified diff of one part: all from the first line that changes to the last. Only real line ends
    count, so that nothing hides behind another kind.
    """
    old = approval.old_text.split("\n") if approval.old_text else []
    new = (approval.new_text or "").split("\n")
    head = _same(old, new)
    room = min(len(old), len(new)) - head
    tail = min(room, _same(old[::-1], new[::-1]))
    before = old[max(0, head - _AROUND) : head]
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    after = new[len(new) - tail :][:_AROUND]
    start, kept = head - len(before) + 1, len(before) + len(after)
    return [
        f"@@ -{start},{len(gone) + kept} +{start},{len(come) + kept} @@ {approval.path}",
        *(f" {line}" for line in before),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in after),
    ]


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _paged(text: str) -> list[str]:
    """The text in pieces, cut behind a line where one ends in their second half."""
    found = []
    while len(text) > _PAGE:
        cut = text.rfind("\n", _PAGE // 2, _PAGE) + 1 or _PAGE
        found.append(text[:cut])
        text = text[cut:]
    return [*found, text]


def _text(words: str) -> Content:
    return {"type": "content", "content": {"type": "text", "text": words}}
