"""Completions: questions to the model beside a conversation, one call without tools, charged under its origin."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentd.core.errors import ProviderError, ShuttingDown
from agentd.core.message import user
from agentd.core.ports import Provider
from agentd.core.prompt import Answered, ModelStop, Prompt, closing
from agentd.core.redaction import Redactor
from agentd.core.turn import Origin, SessionKey
from agentd.engine.budget import Charges
from agentd.engine.workers import Stopping


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model answers, trimmed; `is_cut` says that it would have said more and was not let."""

    text: str
    is_cut: bool = False


@dataclass(slots=True)
class Completions:
    """Asks the model and pays for it. `cheap_model` is what the service has for less, "" where that is
    not known. No call begins once the daemon is `stopping`. Answers are kept by who asks: they have no keys.
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
        """What `model` answers; "" asks the chat's. It may have been cut, at `max_tokens` or before.

        Raises ProviderError (a limit of the budget is its kind `budget`, a model that refuses to answer
        its kind `refused`), ShuttingDown, StorageError when the charge could not be stored.
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

    async def _answer(self, prompt: Prompt) -> Answered:
        if self.stopping.is_set:
            raise ShuttingDown
        async with closing(self.provider.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event
        raise ProviderError("The answer was cut off.", kind="stream_cut", retryable=True)
