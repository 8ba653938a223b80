"""A summary by rule, for where no model makes one: excerpts of what was said, and its identifiers. Pure.

It is never refused: it is short enough, says what it is, and has every identifier that counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentd.domain.transcript import Row, opens_turn
from agentd.engine import tokens
from agentd.engine.compaction.identifiers import needed

HEAD = (
    "Excerpts of the conversation so far, word for word and shortened, made by rule because no summary"
    " could be had. The whole of it is kept and found by search."
)
LATEST = 3  # user messages whose identifiers a summary must keep
_NAMES = 3 / 7  # share of a summary that they may take
_EARLIER = 1 / 2  # share of the rest that the summary before may take
_LINE = 400  # bytes of one message
_CUT = " […] "


def wanted(rows: Sequence[Row], longest: int) -> tuple[str, ...]:
    """The identifiers (paths, URLs, UUIDs, hashes, numbers of four digits or more) that a summary of the
    rows must keep which has at most `longest` tokens: those of the last three user messages.
    """
    said = (row.text for row in reversed(rows) if opens_turn(row) and row.text.strip())
    latest = [text for text, _ in zip(said, range(LATEST), strict=False)]
    return needed(latest, int(_bytes(longest) * _NAMES))


def extract(rows: Sequence[Row], earlier: str, longest: int) -> str:
    """What stands for `rows` and the summary before them, in at most `longest` tokens (100 or more)."""
    names = ", ".join(wanted(rows, longest))
    pieces = [HEAD, names and f"Named last: {names}"]
    room = _bytes(longest) - sum(_size(piece) + 2 for piece in pieces)
    if earlier.strip() and room > 0:
        pieces.append(_shortened(f"Before that:\n{earlier.strip()}", int(room * _EARLIER)))
        room -= _size(pieces[-1]) + 2
    lines: list[str] = []
    for row in reversed(rows):
        text = " ".join(row.text.split()) if row.role.is_spoken else ""
        if not text:
            continue
        line = _shortened(f"{row.role.value} ({row.at:%Y-%m-%d %H:%M} UTC): {text}", _LINE)
        room -= _size(line) + 1
        if room < 0:
            break
        lines.append(line)
    pieces.append("\n".join(reversed(lines)))
    return "\n\n".join(filter(None, pieces))


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and end, in at most so many tokens."""
    return _shortened(text, _bytes(longest))


def _bytes(count: int) -> int:
    """How many bytes are surely no more than so many tokens."""
    return int((count - 1) * tokens.BYTES_PER_TOKEN)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _shortened(text: str, room: int) -> str:
    """The same in at most `room` bytes."""
    if _size(text) <= room:
        return text
    half = max(0, room - len(_CUT.encode())) // 2
    raw = text.encode(errors="replace")
    head, tail = raw[:half].decode(errors="ignore"), raw[len(raw) - half :].decode(errors="ignore")
    return f"{head}{_CUT}{tail}"
