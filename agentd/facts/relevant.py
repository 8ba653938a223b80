"""What a turn is told of the facts: those that have to do with the user's words.

The words come with the request and the answer goes into its prompt: turns that run at the same time
share nothing. Facts are the user's own words, so being told them makes a turn no less trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from agentd.domain.fact import FactHit
from agentd.domain.turn import Context, Kind, Origin, TurnRequest
from agentd.domain.workspace import ContextBlock
from agentd.engine.prompt import fence
from agentd.ports import FactIndex

SECONDS = 0.25  # that a turn waits
FIRST_SECONDS = 1.5  # that the first one waits: facts and embedder are loaded meanwhile
MOST = 10  # facts that a turn is told
SPREAD = 0.35  # how much less than the best one another may have to do with the turn
FACT_BYTES = 512
BLOCK_BYTES = 4096
HEADING = "## Relevant Memories"
SOURCE = "agentd, facts the user told"

log = structlog.get_logger()


class RelevantFacts:
    """At most `most` facts as a volatile context block. `framing` tells the model what they are; a
    turn waits for them `seconds` at most, the first one `first_seconds`.
    """

    def __init__(
        self,
        index: FactIndex,
        framing: str,
        most: int = MOST,
        *,
        seconds: float = SECONDS,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        self._index = index
        self._framing = framing.strip()
        self._most = most
        self._seconds = seconds
        self._patience = max(seconds, first_seconds)

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """One block for the owner's own messages that facts have to do with, else none."""
        if request.kind is not Kind.MAIN or request.origin is not Origin.USER:
            return ()
        if request.context is Context.LIGHT or not request.text.strip():
            return ()
        hits = await self._find(request.text)
        text = block((hit.fact.text for hit in hits), self._framing)
        return (ContextBlock(text, stable=False),) if text else ()

    async def _find(self, text: str) -> list[FactHit]:
        patience, self._patience = self._patience, self._seconds
        try:
            async with asyncio.timeout(patience):
                found = await self._index.find(text, 2 * self._most)
        except TimeoutError:
            log.info("facts_too_late", seconds=patience)
            return []
        except Exception:
            # Whatever is wrong with what is remembered, the user gets an answer.
            log.exception("facts_not_found")
            return []
        least = max([0.0, *(_relation(hit) - SPREAD for hit in found)])
        fit = [hit for hit in found if hit.fact.is_active and _relation(hit) >= least]
        return fit[: self._most]


def block(facts: Iterable[str], framing: str) -> str:
    """The text of the block, within its bytes; "" without facts. Facts that find no room are left
    out, the last ones first.
    """
    lines: list[str] = []
    for fact in facts:
        more = [*lines, f"- {clipped(' '.join(fact.split()))}"]
        if len(_whole(more, framing).encode(errors="replace")) > BLOCK_BYTES:
            break
        lines = more
    return _whole(lines, framing) if lines else ""


def clipped(text: str) -> str:
    """The text if it fits into its bytes, else its beginning, cut between characters."""
    data = text.encode(errors="replace")
    if len(data) <= FACT_BYTES:
        return text
    return data[: FACT_BYTES - len("…".encode())].decode(errors="ignore") + "…"


def _relation(hit: FactHit) -> float:
    """Negative for what has too little to do with the text; an index may leave it out."""
    return hit.scores.get("relation", 0.0)


def _whole(lines: list[str], framing: str) -> str:
    return f"{HEADING}\n{framing}\n{fence(SOURCE, chr(10).join(lines))}"
