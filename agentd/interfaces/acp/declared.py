"""Declared commands on the socket: methods that check what clients send, and what is typed in a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from types import GenericAlias
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.turn import Kind, SessionKey, kind_of
from agentd.interfaces.acp.commands import SlashCommand as Typed
from agentd.interfaces.acp.faults import wrong_params
from agentd.interfaces.acp.peer import Handler, Peer
from agentd.interfaces.commands.declaration import Command, Given, Group, Slash


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


def refused(group: Group, why: Callable[[], AgentdError]) -> dict[str, Handler]:
    """The group's methods by name, where what carries them out is switched off: each raises `why`."""

    async def refuse(_params: dict[str, Any], _peer: Peer) -> Any:
        raise why()

    return {f"_agentd/{command.path}": refuse for command in group.commands}


def refused_typed(
    group: Group, description: str, why: Callable[[], AgentdError]
) -> tuple[Typed, ...]:
    """What would be typed in a chat; each raises `why`."""

    async def refuse(_session: SessionKey, _text: str) -> str:
        raise why()

    return tuple(Typed(slash.name, description, refuse) for slash in group.slashes)


async def _act(slash: Slash, parts: object, session: SessionKey, text: str) -> str:
    if slash.owners and kind_of(session) is not Kind.MAIN:
        raise InvalidRequest(slash.owners, cure="say it in main or a chat")
    return await slash.run(parts, session, text)


def _handler(command: Command, parts: object) -> Handler:
    @cache  # of the 70 methods most are never called: reading all of them took a tenth of a start
    def signature() -> tuple[type[BaseModel], str]:
        return _model(command.params()), command.caller()

    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        # `_meta` may stand in any params of the protocol and means nothing here.
        given = {key: value for key, value in params.items() if key != "_meta"}
        try:
            model, caller = signature()
            checked = dict(model.model_validate(given))
        except ValidationError as error:
            raise wrong_params(error) from None
        return await command.run(parts, **checked, **({caller: peer} if caller else {}))

    return handle


def _model(params: Iterable[Given]) -> type[BaseModel]:
    return create_model("Params", __base__=_Params, **dict(map(_field, params)))


def _field(one: Given) -> tuple[str, Any]:
    """The parameter's name, and its type with what pydantic has to check."""
    param = one.param
    limits = {
        "ge": param.least,
        "le": param.up_to if param.most is None else param.most,
        "lt": param.below,
        "gt": param.above,
    }
    bounds: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    kind: Any = one.type
    if one.is_list and bounds:
        kind, bounds = GenericAlias(list, (Annotated[get_args(kind)[0], Field(**bounds)],)), {}
    if param.length:
        bounds |= {"min_length": param.length[0], "max_length": param.length[1]}
    if one.is_enum:
        bounds["strict"] = False  # JSON has words alone
    default: Any = ... if one.is_needed else one.default
    return one.name, (kind, Field(default, alias=param.key or None, **bounds))
