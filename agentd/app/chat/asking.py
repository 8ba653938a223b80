"""Questions to the user in a chat: the open question with its letters, and the fields of a server's
form.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from agentd.interfaces.commands.plain import visible

_LETTERS = {
    "allow_once": ("y", "[y]es"),
    "reject_once": ("n", "[n]o"),
    "allow_always": ("a", "[a]lways"),
}
_NEXT_PAGE = "next_page"  # the daemon's option that only asks for the next page
_REFUSALS = ("reject_once", "reject_always")

LEAVE = "/cancel"  # typed at a field, cancels the form: the server gets no values

_LONGEST = 80  # characters of a label
_LARGEST = 2**63 - 1  # of an integer: the daemon takes 64 bits
_SHORT = 60  # characters of the choices up to which the prompt repeats them
_KINDS = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
}
_SIZES = {
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
}
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}

CTRL_C = "\x03"  # what a Keyboard returns for Ctrl-C at a question


class AskingPrompt(NamedTuple):
    """The text before the input, and whether the input is the answer to a question."""

    text: str
    is_question: bool = False


class OpenQuestion:
    """Holds at most one open question. Whoever asks holds the lock `turn` from showing the question
    to its answer, so that the answer belongs to what was shown last.
    """

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self._answer: asyncio.Future[Any] | None = None
        self._take: Callable[[str], Any] = str
        self._prompt = ""
        self.turn = asyncio.Lock()
        self.complaint = ""  # why the last line was no valid answer

    @property
    def prompt(self) -> str:
        """The prompt of the open question; "" if none is open."""
        return self._prompt if self._answer is not None else ""

    @property
    def stands(self) -> bool:
        """Whether a question waits for its answer."""
        return self._answer is not None and not self._answer.done()

    async def ask(
        self, options: Sequence[Mapping[str, Any]], opened: Callable[[], None]
    ) -> Mapping[str, Any]:
        """Ask for one of the options and return the outcome in the form of ACP; `opened` is called
        once it can be answered.
        """
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
        """Ask for a letter and return its value in `letters`."""

        def take(line: str) -> str:
            letter = line.strip().lower()[:1]
            if letter not in letters:
                raise ValueError
            return letters[letter]

        return str(await self.line(prompt, take, opened))

    async def line(
        self, prompt: str, take: Callable[[str], Any], opened: Callable[[], None]
    ) -> Any:
        """Ask for a line and return what `take` makes of it. While `take` raises ValueError, the
        question stays open, with the error's text as `complaint`. `opened` is called once it can be
        answered.
        """
        assert self.turn.locked()
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
        """Offer the line to the open question; returns whether one was open. An invalid answer
        leaves it open.
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


class FormField(Struct, frozen=True):
    """A field of a form. `choices` maps the allowed values, if they are few, to their titles;
    `least` and `most` bound a number, the characters of a text, or the items of a list.
    """

    name: str
    label: str
    kind: str
    choices: Mapping[str, str]
    is_needed: bool
    default: Any
    least: float | None = None
    most: float | None = None

    @property
    def prompt(self) -> str:
        """The prompt at which the field is filled in."""
        if self.choices and len(told := " | ".join(self.choices)) <= _SHORT:
            return f"{self.label} [{_plain(told)}]{self._usual}: "
        return f"{self.label}{self._usual}: "

    @property
    def _usual(self) -> str:
        usual = f" (Enter: {_as_text(self.default)})" if self.default is not None else ""
        return usual or ("" if self.is_needed else " (Enter leaves it out)")

    @property
    def line(self) -> str:
        """The description of the field: its label, allowed values and bounds."""
        what = " | ".join(map(self._called, self.choices)) or _KINDS.get(self.kind, "text")
        sized = f",{self._bounds}" if self._bounds else ""
        several = "several of, with commas: " if self.kind == "array" else ""
        return f"{self.label}: {several}{what}{sized}{'' if self.is_needed else ', optional'}"

    def read(self, typed: str) -> Any:
        """Return the value of the input, None for an omitted one. Raises ValueError with a text for
        the user.
        """
        text = typed.strip()
        if not text:
            if self.default is None and self.is_needed:
                raise ValueError(f"{self.label} is needed; {LEAVE} leaves the form")
            return self.default
        if self.kind == "array":
            values = [self._one(part.strip()) for part in text.split(",") if part.strip()]
            return self._sized(values, len(values))
        value = self._one(text)
        if isinstance(value, str):
            return self._sized(value, len(value))
        return value if isinstance(value, bool) else self._sized(value, value)

    def _sized(self, value: Any, size: float) -> Any:
        too_small = self.least is not None and size < self.least
        if too_small or (self.most is not None and size > self.most):
            raise ValueError(f"it has to be{self._bounds}")
        return value

    @property
    def _bounds(self) -> str:
        """The bounds in words, to follow the type; "" if there are none."""
        ends = (("at least", self.least), ("at most", self.most))
        told = " and ".join(f"{word} {end:g}" for word, end in ends if end is not None)
        unit = {"string": " characters", "array": " of them"}.get(self.kind, "")
        return f" {told}{unit}" if told else ""

    def _called(self, choice: str) -> str:
        title = self.choices[choice]
        return choice if title == choice else f"{choice} ({title})"

    def _one(self, text: str) -> Any:
        if self.choices:
            names = {title.casefold(): choice for choice, title in self.choices.items()}
            if text not in self.choices and text.casefold() not in names:
                raise ValueError(f"it is one of {', '.join(self.choices)}")
            return text if text in self.choices else names[text.casefold()]
        try:
            match self.kind:
                case "boolean":
                    return _YES[text.lower()]
                case "integer" if abs(number := int(text)) <= _LARGEST:
                    return number
                case "number" if math.isfinite(size := float(text)):
                    return size
                case "integer" | "number":
                    raise ValueError
            text.encode()  # a terminal may deliver bytes that are no text
        except (KeyError, ValueError):
            raise ValueError(f"it has to be {_KINDS.get(self.kind, 'text')}") from None
        return text


def form_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return the fields of a form's schema, in order."""
    needed = set(schema.get("required") or ())
    return tuple(
        FormField(
            name,
            _plain(one.get("title") or name),
            str(one.get("type") or "string"),
            dict(_choices(one.get("items") or one)),
            name in needed,
            one.get("default"),
            *(_number(one.get(word)) for word in _SIZES.get(str(one.get("type")), ("", ""))),
        )
        for name, one in (schema.get("properties") or {}).items()
    )


def shown_form(params: Mapping[str, Any], fields: Sequence[FormField]) -> Mapping[str, Any]:
    """Return the form in the shape in which a Display shows questions."""
    server = (params.get("_meta") or {}).get("agentd/server") or "?"
    described = [f"  {field.line}{_about(params, field.name)}" for field in fields]
    words = [f"> {line}" for line in str(params.get("message", "")).splitlines()]
    warning = "These are words of another program. Never give it a password or a key."
    text = "\n".join([*words, "", *described, "", warning])
    content = {"type": "content", "content": {"type": "text", "text": text}}
    return {"title": f"the server {server} wants to know something", "content": [content]}


def _about(params: Mapping[str, Any], name: str) -> str:
    schema = (params.get("requestedSchema") or {}).get("properties", {}).get(name) or {}
    words = " ".join(str(schema.get("description") or "").split())
    return f" ({words})" if words else ""


def _choices(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each allowed value and its title."""
    for value in schema.get("enum") or ():
        yield str(value), str(value)
    for one in schema.get("oneOf") or schema.get("anyOf") or ():
        if isinstance(one, Mapping) and "const" in one:
            yield str(one["const"]), _plain(one.get("title") or one["const"])


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _plain(", ".join(map(str, value)) if isinstance(value, list) else value)


def _plain(value: Any) -> str:
    """Return a server's text as one short printable line."""
    return visible(" ".join(str(value).split()))[:_LONGEST]
