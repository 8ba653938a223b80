"""The open question of the agent: which letters answer it, and what they mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_LETTERS = {
    "allow_once": ("y", "[y]es"),
    "reject_once": ("n", "[n]o"),
    "allow_always": ("a", "[a]lways"),
}
_NEXT_PAGE = "next_page"  # the daemon's option that allows nothing yet
_REFUSALS = ("reject_once", "reject_always")


CTRL_C = "\x03"  # what a keyboard reads at a question for the key


class AskingPrompt(NamedTuple):
    """What stands before what is typed, and whether that is no message but an answer."""

    text: str
    is_question: bool = False


class Asking:
    """At most one question at a time; a letter answers it if its option was offered."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self._answer: asyncio.Future[str] | None = None
        self._letters: dict[str, str] = {}
        self._prompt = ""

    @property
    def prompt(self) -> str:
        """What to ask with; "" while no question is open."""
        return self._prompt if self._answer is not None else ""

    @property
    def stands(self) -> bool:
        """Whether a question waits for its answer."""
        return self._answer is not None and not self._answer.done()

    async def ask(
        self, options: Sequence[Mapping[str, Any]], opened: Callable[[], None]
    ) -> Mapping[str, Any]:
        """The user's choice as the protocol words it; `opened` is called once it can be made."""
        kinds = {str(option.get("kind")): str(option.get("optionId")) for option in options}
        self._letters = {
            letter: kinds[kind] for kind, (letter, _) in _LETTERS.items() if kind in kinds
        }
        refusal = next((kinds[kind] for kind in _REFUSALS if kind in kinds), "")
        self._letters["n"] = refusal
        names = [name for letter, name in _LETTERS.values() if letter in self._letters]
        what = "next page" if kinds.get("allow_once") == _NEXT_PAGE else "allow"
        self._prompt = f"{what}? {', '.join(names)}: "
        self._answer = asyncio.get_running_loop().create_future()
        self.opened.set()
        opened()
        try:
            chosen = await self._answer
        finally:
            self._answer = None
            self.opened.clear()
        if not chosen:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def settle(self, line: str) -> bool:
        """Take the line as the answer if a question is open; says whether it was. What is no answer lets
        the question stand.
        """
        if self._answer is None or not self.stands:
            return False
        letter = line.strip().lower()[:1]
        if letter in self._letters:
            self._answer.set_result(self._letters[letter])
            self.opened.clear()
        return True
