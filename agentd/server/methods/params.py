"""Params of own methods: checked by a small model each, unknown keys refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentd.server.faults import wrong_params
from agentd.server.peer import Handler, Peer


class Params(BaseModel):
    """The base of all params models."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NoParams(Params):
    """A method that takes nothing."""


P = TypeVar("P", bound=Params)


def handler(model: type[P], run: Callable[[P], Awaitable[Any]]) -> Handler:
    """A handler that calls `run` with checked params."""
    return peer_handler(model, lambda params, _: run(params))


def peer_handler(model: type[P], run: Callable[[P, Peer], Awaitable[Any]]) -> Handler:
    """The same for a `run` that wants to know who asks."""

    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        # `_meta` may stand in any params of the protocol and means nothing here.
        given = {key: value for key, value in params.items() if key != "_meta"}
        try:
            checked = model.model_validate(given)
        except ValidationError as error:
            raise wrong_params(error) from None
        return await run(checked, peer)

    return handle
