"""The tool `forget`: erases facts about the user for good.

Facts that are named by ids, and a single certain match of a query, are erased at once; otherwise
the possible matches are listed. A turn that has read text from outside asks the user first. Turns
that run without him erase nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agentd.core.errors import NotFound, ToolFailed
from agentd.core.fact import Fact
from agentd.core.ports import FactService, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import Approval, ToolCall, ToolOutput
from agentd.core.turn import SessionKind
from agentd.interfaces.tools.fence import OutsideNames, places_output

_CURE = "Ask the user to send “/forget …” himself."
_MOST = 10  # facts that are listed
_SPEC = ToolSpec(
    "forget",
    "Erase facts the user wants forgotten: by words or ids.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "ids": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
    },
    Effect.IDEMPOTENT,
    is_guarded=True,
    is_owners=True,
)


class Forget:
    """Erases facts; erased facts stay erased, so a call may be repeated."""

    spec = _SPEC

    def __init__(self, facts: FactService, names: OutsideNames) -> None:
        self._facts = facts
        self._names = names

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return what was erased, without repeating it, and which places still mention it. Raises
        ToolFailed.
        """
        if call.kind is not SessionKind.OWNER:
            raise ToolFailed("this session cannot erase facts about the owner")
        if call.origin.is_silent:
            raise ToolFailed("this turn runs without the user: it cannot erase facts", cure=_CURE)
        ids = [str(fact_id) for fact_id in call.input.get("ids", ())]
        query = " ".join(ids) or str(call.input.get("query", "")).strip()
        if not query:
            raise ToolFailed("it is not said what to forget", cure="Give query or ids.")
        matches = await self._facts.matching(query)
        if ids and not matches.maybe and {fact.id for fact in matches.sure} != set(ids):
            return ToolOutput(
                "Not all of these are ids of facts; nothing was erased.", is_error=True
            )
        if matches.maybe or (not ids and len(matches.sure) != 1):
            return _which(matches.sure or matches.maybe)
        named = matches.all_sure
        if ids and (words := str(call.input.get("query", "")).strip()):
            named = (*named, *_successors(named, (await self._facts.matching(words)).earlier))
        if call.tainted and not await host.approve(_approval(named)):
            return ToolOutput("The user wants to keep this.", is_error=True)
        try:
            report = await self._facts.forget([fact.id for fact in named], session=call.session)
        except NotFound:
            return ToolOutput("It was forgotten already.")
        return await places_output(self._names, report.in_words(len(named)), report.named)


def _which(facts: Sequence[Fact]) -> ToolOutput:
    """Return the output that nothing was erased, with the facts that may be meant."""
    if not facts:
        return ToolOutput("No fact says that; nothing was erased.")
    lines = "\n".join(f"{fact.id}: {fact.text}" for fact in facts[:_MOST])
    return ToolOutput(
        "Nothing was erased yet: it is not certain which fact is meant. Call forget with ids and "
        "this query if the user's words say which of these, else show him these and ask:\n"
        f"{lines}"
    )


def _successors(facts: Sequence[Fact], earlier: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the earlier facts that these facts superseded, directly or over several steps."""
    found: dict[str, Fact] = {}
    ids = {fact.id for fact in facts}
    while new := [o for o in earlier if o.superseded_by in ids and o.id not in ids]:
        found |= {old.id: old for old in new}
        ids |= found.keys()
    return tuple(found.values())


def _approval(facts: Sequence[Fact]) -> Approval:
    texts = "; ".join(f"“{fact.text}”" for fact in facts)
    ids = "\0".join(sorted(fact.id for fact in facts))
    digest = hashlib.sha256(f"forget\0{ids}".encode()).hexdigest()
    return Approval(f"Forget for good: {texts}", digest)
