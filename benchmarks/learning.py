"""What is learnt of conversations by a competent model, by one that errs, and what becomes of it.

`python -m benchmarks.learning own|others|fallible|everyday|short|compactions` plays one of them and
says what is wrong with the result. The model is scripted: the figures are about the program around
it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random

from benchmarks.conversations.conversation import Conversation, Turn
from benchmarks.conversations.everyday import CHANGES, PAIRS, everyday
from benchmarks.conversations.faults import Fallible, Undone, beyond, take_back
from benchmarks.conversations.invented import contacts, told
from benchmarks.conversations.player import (
    SETTINGS,
    Played,
    perform,
    play,
    staged,
)
from benchmarks.conversations.reading import others, own, written
from benchmarks.conversations.scoring import Score, score
from benchmarks.row import Row

TIMES = 50  # compactions of one conversation
OTHER_FACTS = 1_000
_WINDOW = "[compaction]\nbackground = false\n"
_FILLER = (
    "The weather stays as it was, the train was late again, and lunch was soup once more. " * 4
)

Figures = tuple[list[Row], list[str]]
"""Lines of the table, and in words what is wrong."""


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal."""
    for measure in MEASURES.values():
        for row in (await measure())[0]:
            yield row


async def of_own() -> Figures:
    """The ten conversations beside this file."""
    return _told("ten conversations of our own", await _played(own()))


async def of_others() -> Figures:
    """The collection by others, where it is."""
    if not (several := others()):
        return [], ["the collection is not here: set AGENTD_MEMBENCH to its folder"]
    return _told(f"{len(several)} conversations by others", await _played(several))


async def of_fallible() -> Figures:
    """The same conversations and the everyday changes, with one item in ten wrong."""
    found, undone, wrong = Score(), Undone(), list[str]()
    items = mistakes = 0
    for seed, conversation in enumerate((*own(), *others(), everyday())):
        model = Fallible(Random(seed))
        async with staged(conversation, model.spoil) as stage:
            played = await perform(stage, conversation)
            undone += await take_back(stage, played, model.mistakes)
        items, mistakes = items + model.items, mistakes + len(model.mistakes)
        wrong += [f"{conversation.name}: {text}" for text in beyond(played, model.mistakes)]
        found += score([played])
    cascades = len(wrong)
    lost = undone.made - undone.forgotten - undone.built_upon - undone.restored
    what = "a model that errs"
    return [
        Row(f"{what}: items that were wrong", [100 * mistakes / items], "%"),
        Row(f"{what}: planted facts active", [found.found / found.facts], "share"),
        Row(f"{what}: facts waiting for a yes", [found.proposed], ""),
        Row(f"{what}: facts harmed beyond its mistakes", [cascades], "", below=1),
        Row(f"{what}: its mistakes in the list of changes", [undone.made], ""),
        Row(f"{what}: on which a later change was built", [undone.built_upon], ""),
        Row(f"{what}: the others not taken back by one command", [lost], "", below=1),
    ], [*wrong, *undone.wrong]


async def of_everyday() -> Figures:
    """Everyday changes, alone and among many other facts."""
    found, wrong = [], []
    for others_known in (0, OTHER_FACTS):
        async with staged(everyday()) as stage:
            await stage.write_facts([one.text for one in contacts(others_known)])
            played = await perform(stage, everyday())
        result = score([played])
        kept = _pairs_kept(played)
        what = f"everyday changes, {others_known:,} other facts"
        found.append(Row(f"{what}: right of {len(CHANGES)}", [result.updated], "", least=22))
        found.append(Row(f"{what}: pairs kept of {len(PAIRS)}", [kept], "", least=len(PAIRS)))
        wrong += result.wrong
    return found, wrong


async def of_short_answers() -> Figures:
    """Answers to the agent's questions in a word, in figures, signs and other scripts."""
    conversation = written("short_answers")
    played = await play(conversation)
    asked = "\n".join(played.learnt)
    sent = [f"] {turn.user}\n" in asked for turn in conversation.turns() if turn.knows]
    result = score([played])
    return [
        Row("short answers that reach the request", [sum(sent) / len(sent)], "share", least=1),
        Row("short answers that are known then", [result.found / result.facts], "share", least=1),
    ], result.wrong


async def of_compactions() -> Figures:
    """One conversation in a small window, compacted again and again."""
    conversation = told(contacts(2 * TIMES))
    window = "context_window = 8000\n"
    times = 0
    async with staged(conversation, provider=window, settings=SETTINGS + _WINDOW) as stage:
        played = Played(conversation)
        session = "chat:long"
        await stage.client.call(
            "session/new", cwd="/", mcpServers=[], _meta={"agentd/key": session}
        )
        for number, turn in enumerate(turn for turn in conversation.turns() if turn.knows):
            await stage.say(session, turn, played)
            await stage.say(session, Turn(_FILLER), played)
            if number % 2:
                done = await stage.client.call("_agentd/sessions/compact", key=session)
                times += bool(done["compacted"])
        await stage.rest()
        played.facts = await stage.known()
    result = score([played])
    return [
        Row("compactions of one conversation", [times], "", least=TIMES),
        Row("its planted facts active afterwards", [result.found / result.facts], "share", least=1),
    ], result.wrong


MEASURES: dict[str, Callable[[], Awaitable[Figures]]] = {
    "own": of_own,
    "others": of_others,
    "fallible": of_fallible,
    "everyday": of_everyday,
    "short": of_short_answers,
    "compactions": of_compactions,
}


async def _played(several: Sequence[Conversation]) -> list[Played]:
    return [await play(conversation) for conversation in several]


def _told(what: str, several: Sequence[Played]) -> Figures:
    found = score(several)
    return [
        Row(f"{what}: planted facts active", [found.found / found.facts], "share", least=0.97),
        Row(
            f"{what}: asked to keep, of {found.asked} not kept",
            [found.asked - found.kept],
            "",
            below=1,
        ),
        Row(f"{what}: updates right", [found.updated / found.updates], "share", least=0.9),
        Row(f"{what}: ended, of {found.ended} still held", [found.still_held], "", below=1),
        Row(f"{what}: distractors stored, of {found.distractors}", [found.lured], "", below=1),
        Row(
            f"{what}: known after {found.forgets} were forgotten", [found.known_still], "", below=1
        ),
        Row(f"{what}: places with their words", [found.left], "", below=1),
        Row(f"{what}: files that mention their subject", [found.mentioned], ""),
        Row(f"{what}: stored twice", [found.twice], "", below=1),
        Row(f"{what}: waiting for a yes", [found.proposed], "", below=1),
        Row(f"{what}: active and not listed", [found.others], ""),
    ], found.wrong


def _pairs_kept(played: Played) -> int:
    active, facts = played.texts("active"), played.conversation.facts
    return sum(
        all(any(map(facts[f"pair {at} {which}"].is_said_by, active)) for which in ("one", "other"))
        for at in range(len(PAIRS))
    )


async def _main(name: str) -> None:
    found, wrong = await MEASURES[name]()
    print("\n".join((*wrong, *(row.as_markdown() for row in found))))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
