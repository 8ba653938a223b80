"""Thinking that a model writes into its text, told apart while it streams."""

from __future__ import annotations

from agentd.domain.prompt import TextDelta, ThoughtDelta

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits a text that may begin with `<think>…</think>`; later tags are text like any other."""

    def __init__(self) -> None:
        self._is_inside: bool | None = None  # None: it has not been seen yet how the text begins
        self._held = ""

    def feed(self, piece: str) -> list[TextDelta | ThoughtDelta]:
        """What of the text so far can be told; a piece that may be part of a tag is held back."""
        self._held += piece
        found: list[TextDelta | ThoughtDelta] = []
        if self._is_inside is None:
            self._begin()
        if self._is_inside:
            thought, tag, rest = self._held.partition(_CLOSE)
            if tag:
                self._is_inside, self._held = False, rest.lstrip()
                keep = ""
            else:
                keep = _beginning_of_tag(thought)
                thought = thought.removesuffix(keep)
                self._held = keep
            if thought:
                found.append(ThoughtDelta(thought))
        if self._is_inside is False:
            found += self.end()
        return found

    def end(self) -> list[TextDelta | ThoughtDelta]:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [ThoughtDelta(held) if self._is_inside else TextDelta(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._is_inside, self._held = True, start.removeprefix(_OPEN)
        elif not _OPEN.startswith(start):
            self._is_inside = False


def _beginning_of_tag(text: str) -> str:
    for size in range(len(_CLOSE) - 1, 0, -1):
        if text.endswith(_CLOSE[:size]):
            return _CLOSE[:size]
    return ""
