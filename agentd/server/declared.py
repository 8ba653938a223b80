"""Declared commands on the socket: methods that check what clients send, and what is typed in a chat."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agentd.commands.declaration import Command, Given, Group, Slash
from agentd.domain.turn import Kind, SessionKey, kind_of
from agentd.errors import InvalidRequest
from agentd.server.commands import Command as Typed
from agentd.server.faults import wrong_params
from agentd.server.peer import Handler, Peer


class _Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def methods(group: Group, parts: object) -> dict[str, Handler]:
    """The group's methods by name; `parts` is the instance of its class that carries them out. Each
    raises InvalidRequest for params that it does not take, and what its command raises.
    """
    return {f"_agentd/{command.path}": _handler(command, parts) for command in group.commands}


def typed(group: Group, parts: object) -> tuple[Typed, ...]:
    """What is typed in a chat instead of a message, carried out by `parts`."""
    return tuple(
        Typed(slash.name, slash.description, partial(_act, slash, parts), slash.hint)
        for slash in group.slashes
    )


async def _act(slash: Slash, parts: object, session: SessionKey, text: str) -> str:
    if slash.owners and kind_of(session) is not Kind.MAIN:
        raise InvalidRequest(slash.owners, cure="say it in main or a chat")
    return await slash.run(parts, session, text)


def _handler(command: Command, parts: object) -> Handler:
    model, caller = _model(command.params()), command.caller()

    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        # `_meta` may stand in any params of the protocol and means nothing here.
        given = {key: value for key, value in params.items() if key != "_meta"}
        try:
            checked = dict(model.model_validate(given))
        except ValidationError as error:
            raise wrong_params(error) from None
        return await command.run(parts, **checked, **({caller: peer} if caller else {}))

    return handle


def _model(params: Iterable[Given]) -> type[BaseModel]:
    fields: dict[str, Any] = {one.name: (one.type, _field(one)) for one in params}
    return create_model("Params", __base__=_Params, **fields)


def _field(one: Given) -> Any:
    names = ("min_length", "max_length", "lt") if one.is_list else ("ge", "le", "lt")
    limits = (one.param.least, one.param.most, one.param.below)
    bounds: dict[str, Any] = {
        name: limit for name, limit in zip(names, limits, strict=True) if limit is not None
    }
    default: Any = ... if one.is_needed else one.default
    return Field(default, alias=one.param.key or None, **bounds)
