"""`/proposals`: what may be added to MEMORY.md and USER.md, and the owner's answer."""

from __future__ import annotations

from agentd.domain.turn import SessionKey
from agentd.errors import InvalidRequest
from agentd.memory.facts.proposals import Answered, Proposal
from agentd.server.commands import Command
from agentd.server.memory_commands import check_owner
from agentd.server.methods.proposals import Proposing

_MOST = 5  # that are shown at once
_DONE = {
    "accepted": "Done: {path} says so now.",
    "rejected": "It will not be proposed again.",
    "changed": "Nothing was written: {path} has changed. This is what it would be now:",
    "too_long": "Nothing was written: {problem}.",
}


class ProposalCommands:
    """Proposals in a conversation. Nothing of it reaches the model."""

    def __init__(self, proposals: Proposing) -> None:
        self._proposals = proposals

    def all(self) -> tuple[Command, ...]:
        """The command."""
        what = "Show what may be added to MEMORY.md and USER.md"
        return (Command("proposals", what, self._answer, "accept or reject, and an id"),)

    async def _answer(self, session: SessionKey, text: str) -> str:
        check_owner(session)
        match text.split():
            case []:
                return await self._listed()
            case ["accept", fact_id]:
                return _told(await self._proposals.accept(fact_id))
            case ["reject", fact_id]:
                return _told(await self._proposals.reject(fact_id))
        raise InvalidRequest(
            "the command needs an answer and an id",
            cure="write it like: /proposals accept k3f9q2ma",
        )

    async def _listed(self) -> str:
        found = await self._proposals.all()
        if not found:
            return "Nothing is proposed: a fact has to be said a few times before."
        shown = [_shown(proposal) for proposal in found[:_MOST]]
        if len(found) > _MOST:
            shown.append(f"… and {len(found) - _MOST} more, once these are answered.")
        return "\n\n".join(shown)


def _told(answered: Answered) -> str:
    proposal = answered.proposal
    line = _DONE[answered.outcome].format(path=proposal.path, problem=proposal.problem)
    return f"{line}\n\n{_shown(proposal)}" if answered.outcome == "changed" else line


def _shown(proposal: Proposal) -> str:
    seen = proposal.sayings
    times = f"said once, on {seen.first:%Y-%m-%d}"
    if seen.times > 1:
        times = f"said {seen.times} times, from {seen.first:%Y-%m-%d} to {seen.last:%Y-%m-%d}"
    if proposal.problem:
        return f"{proposal.text} ({times})\n{proposal.problem}"
    lines = [f"{proposal.path}, {times}:", "```diff", proposal.diff.rstrip(), "```"]
    if proposal.warnings:
        lines.append(f"Careful: {'; '.join(map(str, proposal.warnings))}.")
    lines.append(f"/proposals accept {proposal.id} · /proposals reject {proposal.id}")
    return "\n".join(lines)
