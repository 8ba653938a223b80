"""A session's options that clients can set: permission mode, model and reasoning effort."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from agentd.core.errors import InvalidRequest
from agentd.core.ports import SessionRegistry
from agentd.core.transcript import ApprovalMode, AvailableChoices, Choices
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.hub import Hub

Json = dict[str, Any]

_UNSET = "default"  # on the wire: the effort that is configured
_MODES = {
    ApprovalMode.AUTO: ("Auto", "Ask before protected files change"),
    ApprovalMode.ASK: ("Ask", "Ask before every change of a file"),
}


class SessionOptions:
    """The modes and configuration options of sessions. A change is stored, takes effect with the
    next turn, and is sent to all clients of the session.
    """

    def __init__(self, store: SessionRegistry, hub: Hub, offer: AvailableChoices) -> None:
        self._store = store
        self._hub = hub
        self._offer = offer
        self._changing = asyncio.Lock()

    def opened(self, stored: Choices) -> Json:
        """Return `modes` and `configOptions` of the response that opens a session."""
        choices = self._offer.kept(stored)
        modes = [{"id": str(mode), "name": n, "description": d} for mode, (n, d) in _MODES.items()]
        return {
            "modes": {"currentModeId": str(choices.mode), "availableModes": modes},
            "configOptions": list(self._options(choices)),
        }

    async def set_option(self, session: SessionKey, name: str, value: str) -> list[Json]:
        """Set one option; return all options with their current values. Raises InvalidRequest for
        an unknown option, and for an unknown value with the values that can be chosen.
        """
        async with self._changing:
            before = await self._choices(session)
            after = self._changed(before, name, value)
            if after != before:
                await self._store.choose(session, after)
                self._tell(session, before, after)
        return list(self._options(after))

    async def model(self, session: SessionKey) -> str:
        """Return the model of the session's next turn; "" if no model's name is known."""
        return (await self._choices(session)).model or next(iter(self._offer.models), "")

    @property
    def models(self) -> tuple[str, ...]:
        """The models that a session may choose, the configured one first."""
        return self._offer.models

    async def _choices(self, session: SessionKey) -> Choices:
        return self._offer.kept(await self._store.choices(session))

    def _changed(self, choices: Choices, name: str, value: str) -> Choices:
        option = next((o for o in self._options(choices) if o["id"] == name), None)
        if option is None:
            raise InvalidRequest(f"configId: there is no option {name[:100]!r}")
        values = [known["value"] for known in option["options"]]
        if value not in values:
            raise InvalidRequest(
                f"there is no {name} {value[:100]!r} to choose", cure=f"choose {', '.join(values)}"
            )
        if name == "mode":
            return replace(choices, mode=ApprovalMode(value))
        if name == "model":
            return replace(choices, model="" if value == self._offer.models[0] else value)
        return replace(choices, effort="" if value == _UNSET else value)

    def _tell(self, session: SessionKey, before: Choices, after: Choices) -> None:
        if after.mode is not before.mode:
            told = {"sessionUpdate": "current_mode_update", "currentModeId": str(after.mode)}
            self._hub.tell(session, told)
        options = list(self._options(after))
        self._hub.tell(session, {"sessionUpdate": "config_option_update", "configOptions": options})

    def _options(self, choices: Choices) -> Iterator[Json]:
        modes = {str(mode): name for mode, (name, _) in _MODES.items()}
        yield _select("mode", "Mode", "mode", str(choices.mode), modes)
        if models := self._offer.models:
            names = {model: model for model in models}
            yield _select("model", "Model", "model", choices.model or models[0], names)
        if self._offer.efforts:
            efforts = {_UNSET: "Default", **{e: e.capitalize() for e in self._offer.efforts}}
            current = choices.effort or _UNSET
            yield _select("effort", "Thinking effort", "thought_level", current, efforts)


def _select(name: str, title: str, category: str, current: str, values: dict[str, str]) -> Json:
    return {
        "id": name,
        "name": title,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": [{"value": value, "name": label} for value, label in values.items()],
    }
