"""Completions: questions to the model outside all turns, each one call without tools.

A call is charged to the origin that asks.
"""

from __future__ import annotations

from msgspec import Struct, field

from agentd.core.errors import ProviderError, ShuttingDown
from agentd.core.message import user
from agentd.core.ports import Provider
from agentd.core.prompt import AnswerCompleted, ModelStop, Prompt, closing
from agentd.core.redaction import Redactor
from agentd.core.turn import Origin, SessionKey
from agentd.engine.budget import Charges
from agentd.engine.workers import Stopping


class Completion(Struct, frozen=True):
    """The model's answer, trimmed. `is_cut` is True if the answer was cut before its end."""

    text: str
    is_cut: bool = False


class Completions(Struct):
    """Asks the model and charges the call. `cheap_model` is a cheaper model of the service, "" if
    none is known. No call begins once `stopping` is set. Keys in answers are masked, because
    callers store the answers.
    """

    provider: Provider
    charges: Charges
    cheap_model: str = ""
    stopping: Stopping = field(default_factory=Stopping)
    redactor: Redactor = field(default_factory=Redactor)

    async def ask(
        self,
        session: SessionKey,
        origin: Origin,
        system: str,
        text: str,
        model: str = "",
        *,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return the answer of `model` ("": the chat's model), of at most `max_tokens` tokens.

        Raises ProviderError (kind `budget` at a spending limit, kind `refused` if the model refuses
        to answer), ShuttingDown, StorageError when the charge could not be stored.
        """
        prompt = Prompt(
            system=(system,),
            messages=(user(text),),
            model=model or None,
            max_tokens=max_tokens,
            origin=origin,
        )
        answer = await self._answer(prompt)
        await self.charges.charge(session, origin, answer)
        if answer.stop is ModelStop.REFUSAL:
            raise ProviderError(
                "The model refused to answer.",
                cure="Choose another model for it, or leave it.",
                kind="refused",
            )
        text = self.redactor.kept(answer.message.text).text.strip()
        return Completion(text, answer.stop is not ModelStop.END_TURN)

    async def _answer(self, prompt: Prompt) -> AnswerCompleted:
        if self.stopping.is_set:
            raise ShuttingDown
        async with closing(self.provider.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, AnswerCompleted):
                    return event
        raise ProviderError("The answer was cut off.", kind="stream_cut", retryable=True)
