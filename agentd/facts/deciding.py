"""Asks the model which facts a new statement replaces, where no rule can tell.

Whatever goes wrong, none is replaced: a fact kept twice costs a line, a fact taken for another is lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import structlog

from agentd.domain.fact import NO_SESSION, Fact, Statement
from agentd.domain.turn import MAIN, Origin
from agentd.engine.prompt import fence
from agentd.engine.sidecall import SideCall
from agentd.errors import AgentdError
from agentd.facts.settings import FactsSettings
from agentd.paths import prompt

_INSTRUCTIONS = prompt("judging")
_ASK = "Which of the facts does the statement replace?"
_MAX_TOKENS = 100
_PATIENCE = 30.0  # seconds: whoever wants something remembered waits for it
_ARRAY = re.compile(r"\[[\s\d,.\"']*\]")
_NUMBER = re.compile(r"[\"']?(\d{1,3})(?:\.0)?[\"']?")

log = structlog.get_logger()


class Decider:
    """The `decide` of a FactBook, by one question to the model of `[facts] extraction_model`."""

    def __init__(self, calls: SideCall, settings: FactsSettings) -> None:
        self._calls = calls
        self._model = settings.extraction_model
        self._seconds = min(_PATIENCE, settings.extraction_timeout.total_seconds())

    async def __call__(self, said: Statement, rivals: Sequence[Fact]) -> Sequence[str]:
        """The ids of facts that no longer hold; never of one that is newer, or more to be believed."""
        asked = [fact for fact in rivals if _may_go(fact, said)]
        if not asked:
            return ()
        session = MAIN if said.origin.session == NO_SESSION else said.origin.session
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._calls.ask(
                    session,
                    Origin.EXTRACTION,
                    _INSTRUCTIONS,
                    _shown(said, asked),
                    self._model,
                    max_tokens=_MAX_TOKENS,
                )
        except (AgentdError, TimeoutError) as error:
            # All of them stay beside the new one, as the rule has it.
            reason = error.reason if isinstance(error, AgentdError) else "timeout"
            log.warning("facts_not_decided", session=session, reason=reason)
            return ()
        numbers = numbers_in(answer, len(asked))
        if numbers is None:
            log.info("decision_not_understood", session=session, characters=len(answer))
        return tuple(asked[number - 1].id for number in numbers or ())


def numbers_in(answer: str, most: int) -> tuple[int, ...] | None:
    """The numbers of the one array in the answer, or None if it is in doubt what was meant: there is
    none, arrays that differ, or a number that nothing has.
    """
    arrays = {_read(match[0]) for match in _ARRAY.finditer(answer)}
    if not arrays and _NUMBER.fullmatch(answer.strip()):
        arrays = {_read(f"[{answer.strip()}]")}
    if len(arrays) != 1:
        return None
    numbers = arrays.pop()
    if numbers is None or not all(1 <= number <= most for number in numbers):
        return None
    return numbers


def _read(array: str) -> tuple[int, ...] | None:
    pieces = [piece.strip() for piece in array[1:-1].split(",") if piece.strip()]
    found = [_NUMBER.fullmatch(piece) for piece in pieces]
    return tuple(sorted({int(m[1]) for m in found if m})) if all(found) else None


def _may_go(fact: Fact, said: Statement) -> bool:
    return fact.source.authority <= said.source.authority and fact.valid_from <= said.at


def _shown(said: Statement, facts: Sequence[Fact]) -> str:
    olds = (
        fence(f"fact {number}, since {fact.valid_from:%Y-%m-%d}", fact.text)
        for number, fact in enumerate(facts, 1)
    )
    new = fence(f"new statement, {said.at:%Y-%m-%d}", said.text)
    return "\n\n".join((*olds, new, _ASK))
