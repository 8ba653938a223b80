"""How a kind of fact is told, repeated, changed and asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Shape = Literal["name", "word", "port", "host"]


@dataclass(frozen=True, slots=True)
class Form:
    """Sentences with `{s}` for what it is about and `{v}` for the value; `{o}` is the value before.

    `say` are first tellings, `again` say the same in other words, `change` give another value: none
    for what may have many values. A `fact` with its `relation` is how a model words it. Each of the
    `subjects` is one fact; where there are none, `times` many have an invented one.
    """

    say: tuple[str, ...]
    again: tuple[str, ...]
    change: tuple[str, ...]
    ask: str
    fact: str
    relation: str
    subjects: tuple[str, ...] = ()
    times: int = 0
    shape: Shape = "name"
    category: str = "personal"
    about: str = "user"


@dataclass(frozen=True, slots=True)
class Noise:
    """A message that tells no fact of the user. `answer` is what the assistant says to it, `file` what a
    tool reads then, and `lure` the fact that a gullible model would make of it.
    """

    kind: str
    text: str
    lure: str
    answer: str = ""
    file: str = ""
