"""`facts/offer`: another program proposes a sentence to keep; the owner is asked with its exact
words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import Busy, InvalidRequest
from agentd.core.screening.lookalikes import spell_out
from agentd.core.tool import Approval, Decision
from agentd.core.turn import MAIN
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param
from agentd.interfaces.commands.facts import refusals
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.fact import OperationResult
    from agentd.core.turn import SessionKey

OFFERS = Group("facts")

_NOT_KEPT = {
    Decision.DENY: "the user did not want this remembered",
    Decision.UNASKED: (
        "nobody was there who could have been asked: the user has to have `agentd chat` open"
    ),
}


class OwnerAsker(Protocol):
    """Port: asks the owner."""

    async def ask_owner(self, call_id: str, approval: Approval) -> Decision:
        """Ask in any open session of the owner; returns UNASKED at once if none is open."""


class OfferedFacts(Protocol):
    """Port: keeps facts."""

    async def keep_verbatim(self, sentence: str, session: SessionKey) -> Sequence[OperationResult]:
        """Keep a sentence unchanged; the owner has said it or allowed it."""


class OfferCommands:
    """The command for proposals of other programs. Only one question is open at a time, so that no
    program can flood the owner.
    """

    def __init__(self, facts: OfferedFacts, owner: OwnerAsker) -> None:
        self._facts = facts
        self._owner = owner
        self._is_asking = False

    @OFFERS.command(fields, seconds=MODEL_SECONDS, line=False)
    async def offer(
        self,
        text: Annotated[str, Param(length=(1, 1000))],
        client: Annotated[str, Param(length=(0, 200))] = "",
    ) -> dict[str, Any]:
        """Ask the owner whether a sentence is to be kept, and keep it byte for byte if it is.
        `client` is what the program that offers it calls itself.
        """
        sentence = " ".join(text.split())
        if not sentence or spell_out(sentence) != sentence:
            raise InvalidRequest(
                "text: is blank, or holds characters that nobody sees or that pass for others",
                cure="send one plain sentence",
            )
        if self._is_asking:
            raise Busy("the user is being asked about something else", cure="try again later")
        self._is_asking = True
        try:
            answer = await self._owner.ask_owner("offer", _question(sentence, client))
        finally:
            self._is_asking = False
        if answer in _NOT_KEPT:
            return {"kept": False, "text": sentence, "reason": _NOT_KEPT[answer], "refused": []}
        learned = await self._facts.keep_verbatim(sentence, MAIN)
        refused = refusals(learned)
        reason = "; ".join(one["text"] for one in refused)
        return {"kept": not refused, "text": sentence, "reason": reason, "refused": refused}


def _question(sentence: str, client: str) -> Approval:
    name = " ".join(client.split())[:50]
    return Approval(
        (
            "Remember what another program says of "
            f"you{f' (it calls itself “{name}”)' if name else ''}"
        ),
        hashlib.sha256(f"offer\0{sentence}".encode(errors="replace")).hexdigest(),
        new_text=sentence,
        warnings=("these are words of another program, and no model of yours has checked them",),
    )
