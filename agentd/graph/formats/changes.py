"""Deltas as text: `.0c` of what is new, what is gone, and which state follows which."""

from __future__ import annotations

from typing import Any, TypeVar

from agentd.domain.concept import ConceptHash, ContextHash, Digest, EpisodeHash
from agentd.errors import GraphError
from agentd.graph.delta import Delta, StateHash
from agentd.graph.formats.cursor import CURE, Cursor
from agentd.graph.formats.reading import record_of
from agentd.graph.formats.seal import HEADER, opened, sealed
from agentd.graph.formats.values import read_whole
from agentd.graph.formats.writing import body

_Kind = TypeVar("_Kind", bound=Digest)


def write_delta(delta: Delta) -> str:
    """The delta as text that `read_delta` gives back: `D:base>target` with whole hashes, the lines of
    its record, `-R:`, `-X:` and `-C:` with the hashes of what is gone, and a seal. Raises GraphError for
    a delta that is not what its hashes say.
    """
    return sealed(
        [
            HEADER,
            f"D:{delta.base.hex}>{delta.target.hex}",
            *body(delta.record),
            *(f"-R:{gone.hex}" for gone in delta.episodes),
            *(f"-X:{gone.hex}" for gone in delta.contexts),
            *(f"-C:{gone.hex}" for gone in delta.concepts),
        ]
    )


def as_json(delta: Delta) -> dict[str, Any]:
    """The shape in answers. Raises GraphError as `write_delta` does."""
    return {
        "base": delta.base.hex,
        "state": delta.target.hex,
        "episodes": len(delta.record.relations),
        "gone": len(delta.episodes),
        "text": write_delta(delta),
    }


def read_delta(text: str) -> Delta:
    """The delta that the text says. Raises GraphError, with line and column, for a text that was cut
    off or changed, and as `agentd.graph.formats.reading.read` does.
    """
    lines = list(opened(text, is_sealed=True))
    base, target = _states(lines.pop(0) if lines else None)
    episodes: list[EpisodeHash] = []
    contexts: list[ContextHash] = []
    concepts: list[ConceptHash] = []
    rest = []
    for line in lines:
        if line.take("-R:"):
            episodes.append(_gone(line, EpisodeHash))
        elif line.take("-X:"):
            contexts.append(_gone(line, ContextHash))
        elif line.take("-C:"):
            concepts.append(_gone(line, ConceptHash))
        else:
            rest.append(line)
    record = record_of(rest)
    return Delta(base, target, record, tuple(episodes), tuple(contexts), tuple(concepts))


def _states(line: Cursor | None) -> tuple[StateHash, StateHash]:
    if line is None or not line.take("D:"):
        number = line.number if line else 2
        msg = "these are no changes: they begin with D: and two states"
        raise GraphError(msg, cure=CURE, line=number, column=1)
    base = read_whole(line.placed(), StateHash, line)
    line.expect(">", "between the two states")
    target = read_whole(line.placed(), StateHash, line)
    line.end()
    return base, target


def _gone(line: Cursor, kind: type[_Kind]) -> _Kind:
    digest = read_whole(line.placed(), kind, line)
    line.end()
    return digest
