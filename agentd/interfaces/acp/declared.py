"""Serves declared commands: as ACP methods with checked params, and as slash commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from types import GenericAlias
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.interfaces.acp.faults import wrong_params
from agentd.interfaces.acp.peer import Handler, Peer
from agentd.interfaces.acp.slash_commands import SlashCommand as Typed
from agentd.interfaces.commands.declaration import Command, DeclaredParameter, Group, Slash


class _Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def methods(group: Group, parts: object) -> dict[str, Handler]:
    """Return a handler for each command of the group, by method name. `parts` is the instance whose
    methods run. A handler raises InvalidRequest for wrong params, and whatever its command raises.
    """
    return {f"_agentd/{command.path}": _handler(command, parts) for command in group.commands}


def typed(group: Group, parts: object) -> tuple[Typed, ...]:
    """Return the group's slash commands; they run as methods of the instance `parts`."""
    return tuple(
        Typed(slash.name, slash.description, partial(_act, slash, parts), slash.hint)
        for slash in group.slashes
    )


def refused(group: Group, why: Callable[[], AgentdError]) -> dict[str, Handler]:
    """Return handlers for a group that is switched off, by method name: each raises `why()`."""

    async def refuse(_params: dict[str, Any], _peer: Peer) -> Any:
        raise why()

    return {f"_agentd/{command.path}": refuse for command in group.commands}


def refused_typed(
    group: Group, description: str, why: Callable[[], AgentdError]
) -> tuple[Typed, ...]:
    """Return the slash commands of a group that is switched off: each raises `why()`."""

    async def refuse(_session: SessionKey, _text: str) -> str:
        raise why()

    return tuple(Typed(slash.name, description, refuse) for slash in group.slashes)


async def _act(slash: Slash, parts: object, session: SessionKey, text: str) -> str:
    if slash.owners and kind_of(session) is not SessionKind.OWNER:
        raise InvalidRequest(slash.owners, cure="say it in main or a chat")
    return await slash.run(parts, session, text)


def _handler(command: Command, parts: object) -> Handler:
    @cache  # lazy, since most of the 70 methods are never called: all models took 10% of a start
    def signature() -> tuple[type[BaseModel], str]:
        return _model(command.params()), command.caller()

    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        # The protocol allows `_meta` in all params; declared commands do not use it.
        given = {key: value for key, value in params.items() if key != "_meta"}
        try:
            model, caller = signature()
            checked = dict(model.model_validate(given))
        except ValidationError as error:
            raise wrong_params(error) from None
        return await command.run(parts, **checked, **({caller: peer} if caller else {}))

    return handle


def _model(params: Iterable[DeclaredParameter]) -> type[BaseModel]:
    return create_model("Params", __base__=_Params, **dict(map(_field, params)))


def _field(one: DeclaredParameter) -> tuple[str, Any]:
    """Return a parameter's name, and its type with the constraints that pydantic checks."""
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
        bounds["strict"] = False  # JSON has no enums: accept their values as strings
    default: Any = ... if one.is_needed else one.default
    return one.name, (kind, Field(default, alias=param.key or None, **bounds))
