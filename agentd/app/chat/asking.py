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
        self._answer: asyncio.Future[Any] | None = None
        self._take: Callable[[str], Any] = str
        self._prompt = ""
        self._turn = asyncio.Lock()
        self.complaint = ""  # what was wrong with the last line, in words

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
        letters = {letter: kinds[kind] for kind, (letter, _) in _LETTERS.items() if kind in kinds}
        letters["n"] = next((kinds[kind] for kind in _REFUSALS if kind in kinds), "")
        names = [name for letter, name in _LETTERS.values() if letter in letters]
        what = "next page" if kinds.get("allow_once") == _NEXT_PAGE else "allow"
        chosen = await self.choose(f"{what}? {', '.join(names)}: ", letters, opened)
        if not chosen:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def choose(
        self, prompt: str, letters: Mapping[str, str], opened: Callable[[], None]
    ) -> str:
        """What the letter that the user types stands for."""

        def take(line: str) -> str:
            letter = line.strip().lower()[:1]
            if letter not in letters:
                raise ValueError
            return letters[letter]

        return str(await self.line(prompt, take, opened))

    async def line(
        self, prompt: str, take: Callable[[str], Any], opened: Callable[[], None]
    ) -> Any:
        """What `take` makes of the line that the user types; where it raises ValueError, with words or
        without, the question stands. `opened` is called once it can be answered.
        """
        async with self._turn:
            self._prompt, self._take, self.complaint = prompt, take, ""
            self._answer = asyncio.get_running_loop().create_future()
            self.opened.set()
            opened()
            try:
                return await self._answer
            finally:
                self._answer = None
                self.opened.clear()

    def settle(self, line: str) -> bool:
        """Take the line as the answer if a question is open; says whether it was. What is no answer lets
        the question stand.
        """
        if self._answer is None or not self.stands:
            return False
        try:
            value = self._take(line)
        except ValueError as error:
            self.complaint = str(error)
        else:
            self._answer.set_result(value)
            self.opened.clear()
        return True
