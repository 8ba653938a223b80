"""Thinking that a model writes into its text, told apart while it streams."""

from __future__ import annotations

from enum import Enum, auto

from agentd.domain.prompt import TextDelta, ThoughtDelta

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits a text that may begin with `<think>…</think>`; later tags are text like any other."""

    def __init__(self) -> None:
        self._place = _Place.BEGINNING
        self._held = ""

    def feed(self, piece: str) -> list[TextDelta | ThoughtDelta]:
        """What of the text so far can be told; a piece that may be part of a tag is held back."""
        self._held += piece
        found: list[TextDelta | ThoughtDelta] = []
        if self._place is _Place.BEGINNING:
            self._begin()
        if self._place is _Place.THINKING and (thought := self._thought()):
            found.append(ThoughtDelta(thought))
        if self._place is _Place.BEHIND:
            self._held = self._held.lstrip()
            self._place = _Place.TEXT if self._held else _Place.BEHIND
        return found + self.end() if self._place is _Place.TEXT else found

    def end(self) -> list[TextDelta | ThoughtDelta]:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [ThoughtDelta(held) if self._place is _Place.THINKING else TextDelta(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._place, self._held = _Place.THINKING, start.removeprefix(_OPEN)
        elif not _OPEN.startswith(start):
            self._place = _Place.TEXT

    def _thought(self) -> str:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._place, self._held = _Place.BEHIND, rest
            return thought
        self._held = _beginning_of_tag(thought)
        return thought.removesuffix(self._held)


class _Place(Enum):
    """Where in the text the next piece belongs."""

    BEGINNING = auto()  # it may still turn out to be a tag
    THINKING = auto()
    BEHIND = auto()  # only blanks so far behind the thinking
    TEXT = auto()


def _beginning_of_tag(text: str) -> str:
    sizes = range(len(_CLOSE) - 1, 0, -1)
    return next((_CLOSE[:size] for size in sizes if text.endswith(_CLOSE[:size])), "")
