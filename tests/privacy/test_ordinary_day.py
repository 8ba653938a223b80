"""The other side of taint: on an ordinary day the owner is hardly asked, and all that he wants
happens.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest

from agentd.core.message import Message, ToolResult
from agentd.core.prompt import Prompt
from agentd.core.turn import MAIN, Origin
from tests.privacy.obedient import MARK, Home, Obedient, Wish, shown

SUBJECTS = ("boiler", "school", "tax", "garage", "choir", "dentist", "holiday", "library")
TOPICS = ("bread", "tides", "bicycles", "moss", "kilns")
NOTES = tuple(f"the {what} is done" for what in ("roof", "lawn", "wash", "post", "fence")) + tuple(
    f"{who} called" for who in ("Kim", "Ada", "Bo", "Lou", "Ida")
)
FACTS = tuple(
    f"my {who} lives in {where}"
    for who, where in (
        ("sister", "Lund"),
        ("brother", "Graz"),
        ("aunt", "Cork"),
        ("uncle", "Brno"),
        ("niece", "Pisa"),
        ("cousin", "Ghent"),
    )
)
TALK = tuple(f"what a day, cup of tea number {n}" for n in range(1, 21))


class Helper(Obedient):
    """A model that does what the owner asks, and tells what it was shown."""

    def __call__(self, prompt: Prompt) -> str | Message:
        if prompt.origin is Origin.FLUSH:
            return self._kept(prompt)
        if prompt.origin is Origin.EXTRACTION:
            said = [fact for fact in FACTS if fact in shown(prompt)]
            return str([]) if not said else _facts(said)
        if prompt.origin is Origin.SUMMARY or self.wishes:
            return super().__call__(prompt)
        told = [block for message in prompt.messages[-1:] for block in message.blocks]
        return " ".join(block.text for block in told if hasattr(block, "text"))

    def _kept(self, prompt: Prompt) -> str | Message:
        if any(isinstance(block, ToolResult) for block in prompt.messages[-1].blocks):
            return "NO_REPLY"
        said = [text for text in (*TALK, *NOTES) if text in shown(prompt)]
        said += [f"mail about the {what}" for what in SUBJECTS if f"The {what} " in shown(prompt)]
        return self._called([("memory_write", {"content": "\n".join(said)})])


def _facts(said: list[str]) -> str:
    objects = (f'{{"op": "add", "content": "{one}", "quote": "{one}"}}' for one in said)
    return f"[{', '.join(objects)}]"


class Day:
    """What the owner does, and what came of it."""

    def __init__(self, home: Home, mails: str) -> None:
        self.home = home
        self._mails = mails
        self.turns = 0
        self.effects: list[str] = []

    async def _said(self, text: str, *wishes: Wish, **more: object) -> str:
        self.turns += 1
        turn = await self.home.say(MAIN, text, *wishes, **more)
        assert turn.failure is None, turn.failure
        assert not any(call.is_error for call in turn.tool_calls), turn
        return turn.text

    def _came(self, effect: str, happened: bool) -> None:
        assert happened, effect
        self.effects.append(effect)

    async def talk(self, text: str) -> None:
        await self._said(text)

    async def mail(self, what: str) -> None:
        text = f"The {what} is due on Friday."
        if self._mails == "attached":
            words = f"what does it say about the {what}?\n"
            whole = f"{words}{text}"
            answer = await self._said(whole, quoted=((len(words), len(whole)),))
        else:
            (self.home.root / "work/mail.md").write_text(text)
            wish = ("memory_read", {"path": "@work/mail.md"})
            answer = await self._said(f"read me the mail about the {what}", wish)
        self._came(f"mail {what}", "due on Friday" in answer)

    async def link(self, what: str) -> None:
        words = "what is this about? "
        whole = f"{words}[On {what}](https://example.org/{what})"
        answer = await self._said(whole, quoted=((len(words), len(whole)),))
        self._came(f"link {what}", f"On {what}" in answer)

    async def note(self, text: str) -> None:
        await self._said(f"note that {text}", ("memory_write", {"content": text}))
        note = self.home.workspace / self.home.parts.memory.files.daily_note()
        self._came(f"note {text}", text in note.read_text())

    async def remember(self, fact: str) -> None:
        await self._said(f"{fact}, remember that", ("remember", {"text": fact, "quote": fact}))
        learnt = self.home.parts.facts.learnt
        assert learnt is not None
        self._came(fact, any(fact in one.text for one in await learnt.book.all()))

    async def look_up(self, what: str) -> None:
        wish = ("memory_read", {"path": f"projects/{what}.md"})
        answer = await self._said(f"what do I know about the {what}?", wish)
        self._came(f"look up {what}", f"{what} facts" in answer)

    async def write(self, what: str) -> None:
        wish = ("memory_write", {"target": f"projects/{what}.md", "content": f"{what} plans"})
        await self._said(f"put that into the page on the {what}", wish)
        page = (self.home.workspace / f"projects/{what}.md").read_text()
        self._came(f"write {what}", page.endswith(f"{what} plans\n"))


async def _lived(day: Day) -> None:
    talk, notes, facts = iter(TALK), iter(NOTES), iter(FACTS)
    for number, what in enumerate(SUBJECTS):
        await day.talk(next(talk))
        await day.look_up(what)
        if number in {0, 3, 6}:
            await day.write(what)
        await day.mail(what)
        await day.talk(next(talk))
        await day.note(next(notes))
        if number < len(TOPICS):
            await day.link(TOPICS[number])
        if number < len(FACTS):
            await day.remember(next(facts))
    for note in notes:
        await day.note(note)
    for text in talk:
        await day.talk(text)


async def _ordinary(root: Path, mails: str) -> int:
    """How often the owner was asked."""
    home = Home(root)
    home.model = Helper()
    home.provider.default = home.model
    home.owner.yes = True
    for what in SUBJECTS:
        (home.workspace / f"projects/{what}.md").write_text(f"{what} facts\n")
    async with home.opened():
        day = Day(home, mails)
        await _lived(day)
        assert (day.turns, len(day.effects), len(set(day.effects))) == (60, 40, 40)
        await home.compact(MAIN)
        note = (home.workspace / home.parts.memory.files.daily_note()).read_text().splitlines()
        clean = [line for line in note if MARK not in line]
        assert all(any(text in line for line in clean) for text in (*TALK, *NOTES))
        assert not any("mail about" in line for line in clean)
        assert all(any(what in line for line in note) for what in SUBJECTS)
        return len(home.owner.asked)


@pytest.mark.parametrize("mails", ["attached", "read by a tool"])
def test_an_ordinary_day_asks_three_times_at_most_and_all_that_is_wanted_happens(
    mails: str,
) -> None:
    root = Path(tempfile.mkdtemp(prefix="agentd-"))
    try:
        assert asyncio.run(_ordinary(root, mails)) <= 3
    finally:
        shutil.rmtree(root)
