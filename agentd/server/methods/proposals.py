"""`_agentd/memory/proposals`: lines that facts have earned in MEMORY.md and USER.md, and the yes to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agentd.errors import InvalidRequest
from agentd.memory.facts.proposals import Answered, Proposal
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler


class Proposing(Protocol):
    """What is proposed, and what becomes of it."""

    async def all(self) -> Sequence[Proposal]:
        """Those that are open; they are shown with that."""

    async def accept(self, fact_id: str, digest: str | None = None) -> Answered:
        """Write it as it was shown. Raises NotFound."""

    async def reject(self, fact_id: str) -> Answered:
        """Never propose it again. Raises NotFound."""


class ProposalsParams(Params):
    """An answer to a proposal; none lists them. With `digest` the yes is to that very change."""

    accept: str | None = None
    reject: str | None = None
    digest: str | None = None


class ProposalMethods:
    """Proposals for commands."""

    def __init__(self, proposals: Proposing) -> None:
        self._proposals = proposals

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/memory/proposals": handler(ProposalsParams, self._answer)}

    async def _answer(self, params: ProposalsParams) -> dict[str, Any]:
        """`done` is "" for a list, `accepted`, `rejected`, or why nothing was written: `changed`, and
        `proposals` has it as it is now, or `too_long`.
        """
        if params.accept and params.reject:
            raise InvalidRequest("accept and reject: only one of them", cure="answer twice")
        if params.accept:
            answered = await self._proposals.accept(params.accept, params.digest)
        elif params.reject:
            answered = await self._proposals.reject(params.reject)
        else:
            found = await self._proposals.all()
            return {"proposals": [proposal.as_json() for proposal in found], "done": ""}
        return {"proposals": [answered.proposal.as_json()], "done": answered.outcome}
