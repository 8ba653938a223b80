"""`memory proposals`: lists facts proposed for MEMORY.md and USER.md; accepts or rejects one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import InvalidRequest
from agentd.interfaces.commands.declaration import NOTES, Group, Param
from agentd.interfaces.commands.plain import visible

if TYPE_CHECKING:
    from agentd.core.turn import SessionKey
    from agentd.memory.facts.proposals import AnsweredProposal, Proposal

PROPOSALS = Group("memory")

_MOST = 5  # proposals shown at once in a chat
_DONE = {
    "accepted": "Done: {path} says so now.",
    "rejected": "It will not be proposed again.",
    "changed": "Nothing was written: {path} has changed. This is what it would be now:",
    "too_long": "Nothing was written: {problem}.",
}


class Proposing(Protocol):
    """The open proposals, and the owner's answers to them."""

    async def all(self) -> Sequence[Proposal]:
        """Return the open proposals; from then on they count as shown."""

    async def accept(self, fact_id: str, digest: str | None = None) -> AnsweredProposal:
        """Write the proposal of this fact as it was last shown, or shown with this digest; nothing
        is written if it has changed since. Raises NotFound.
        """

    async def reject(self, fact_id: str) -> AnsweredProposal:
        """Never propose this fact again. Raises NotFound."""


def _proposals_text(result: Mapping[str, Any]) -> str:
    """Return the result as text for the terminal: the proposals, or what was done with one."""
    found = [_proposal(proposal) for proposal in result["proposals"]]
    if not found:
        return "nothing is proposed: a fact has to be said a few times before"
    path = visible(result["proposals"][0]["path"])
    told = {
        "accepted": f"written to {path}",
        "rejected": "it will not be proposed again",
        "changed": f"nothing was written: {path} has changed, and this is what it would be now",
        "too_long": "nothing was written",
    }
    if result["done"] in {"accepted", "rejected"}:
        return told[result["done"]]
    head = [told[result["done"]]] if result["done"] else []
    return "\n\n".join([*head, *found])


def _proposal(proposal: Mapping[str, Any]) -> str:
    seen = proposal["evidence"]
    times = f"said once, {seen['first'][:10]}"
    if seen["times"] > 1:
        times = f"said {seen['times']} times, {seen['first'][:10]} to {seen['last'][:10]}"
    lines = [f"{proposal['id']}  {visible(proposal['text'])}  ({times})"]
    lines += [f"    {visible(line)}" for line in proposal["diff"].splitlines()]
    if proposal["problem"]:
        lines.append(f"    {visible(proposal['problem'])}")
    for warning in proposal["warnings"]:
        told = f"{warning['reason']} ({warning['severity']})"
        lines.append(f"    warning: {told}; prompts would carry it")
    return "\n".join(lines)


class ProposalCommands:
    """The commands on proposals. Their answers go to the owner only, never to the model."""

    def __init__(self, proposals: Proposing) -> None:
        self._proposals = proposals

    @PROPOSALS.command(_proposals_text)
    async def proposals(
        self,
        *,
        accept: Annotated[str | None, Param("Write this one, as it was shown.")] = None,
        reject: Annotated[str | None, Param("Never propose this one again.")] = None,
        digest: Annotated[str | None, Param("Accept only the change with this digest.")] = None,
    ) -> dict[str, Any]:
        """List the facts that MEMORY.md and USER.md might have, and say yes or no to one."""
        if accept and reject:
            raise InvalidRequest("accept and reject: only one of them", cure="answer twice")
        if accept:
            answered = await self._proposals.accept(accept, digest)
        elif reject:
            answered = await self._proposals.reject(reject)
        else:
            found = await self._proposals.all()
            return {"proposals": [proposal.as_json() for proposal in found], "done": ""}
        return {"proposals": [answered.proposal.as_json()], "done": answered.outcome}

    @PROPOSALS.slash(
        "proposals",
        "Show what may be added to MEMORY.md and USER.md",
        "accept or reject, and an id",
        owners=NOTES,
    )
    async def proposals_typed(self, session: SessionKey, text: str) -> str:
        """Answer `/proposals`: list the open proposals, or accept or reject one; return the text to
        show. Raises InvalidRequest unless `text` is empty or an answer and an id, NotFound.
        """
        match text.split():
            case []:
                return await self._list_text()
            case ["accept", fact_id]:
                return _done(await self._proposals.accept(fact_id))
            case ["reject", fact_id]:
                return _done(await self._proposals.reject(fact_id))
        raise InvalidRequest(
            "the command needs an answer and an id",
            cure="write it like: /proposals accept k3f9q2ma",
        )

    async def _list_text(self) -> str:
        found = await self._proposals.all()
        if not found:
            return "Nothing is proposed: a fact has to be said a few times before."
        shown = [_proposal_lines(proposal) for proposal in found[:_MOST]]
        if len(found) > _MOST:
            shown.append(f"… and {len(found) - _MOST} more, once these are answered.")
        return "\n\n".join(shown)


def _done(answered: AnsweredProposal) -> str:
    proposal = answered.proposal
    line = _DONE[answered.outcome].format(path=proposal.path, problem=proposal.problem)
    return f"{line}\n\n{_proposal_lines(proposal)}" if answered.outcome == "changed" else line


def _proposal_lines(proposal: Proposal) -> str:
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
