"""Questions and pictures of the graph, as methods whose arguments are checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.core.errors import GraphOff, InvalidRequest
from agentd.interfaces.acp.faults import wrong_params
from agentd.interfaces.acp.peer import Handler, Peer
from agentd.memory.graph.paths import MAX_RESULTS, Way
from agentd.memory.graph.record import Form
from agentd.memory.graph.service import GraphDesk
from agentd.memory.graph.wire import answer_json, picture_json

# Params of own methods: checked by a small model each, unknown keys refused.


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


# `_agentd/facts/query` and `_agentd/facts/graph`: how what is known hangs together.

NAMES = ("_agentd/facts/query", "_agentd/facts/graph")
MOST = 100  # concepts of a picture


class QueryParams(Params):
    """A question of the graph's language, or any text; `limit` is for the text."""

    question: str
    limit: int = Field(10, ge=1, le=MAX_RESULTS)


class PictureParams(Params):
    """What is to be in the middle, how many facts away the rest may be, how many there may be, and in
    which way they are found; in another form than a picture it is told as text, too.
    """

    name: str
    depth: int | None = Field(None, ge=1)
    most: int = Field(24, ge=1, le=MOST)
    by: Way = Field(Way.PATHS, strict=False)  # JSON has words alone
    form: Form = Field(Form.PICTURE, strict=False)


class GraphMethods:
    """The graph for commands."""

    def __init__(self, desk: GraphDesk) -> None:
        self._desk = desk

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/facts/query": handler(QueryParams, self._query),
            "_agentd/facts/graph": handler(PictureParams, self._picture),
        }

    async def _query(self, params: QueryParams) -> dict[str, Any]:
        answer = await self._desk.ask(params.question, limit=params.limit)
        return {**answer_json(answer), "tellers": await self._desk.tellers(answer)}

    async def _picture(self, params: PictureParams) -> dict[str, Any]:
        if params.depth is not None and params.depth > params.by.most:
            raise InvalidRequest(
                f"by {params.by} nothing is looked for {params.depth} facts away",
                cure=f"ask for a depth of at most {params.by.most}",
            )
        picture = await self._desk.picture(
            params.name, depth=params.depth, most=params.most, by=params.by
        )
        if params.form is Form.PICTURE:
            return picture_json(picture)
        return {**picture_json(picture), "text": await self._desk.told(picture, params.form)}


def refusals() -> dict[str, Handler]:
    """A refusal under each name, where the graph is switched off."""
    return dict.fromkeys(NAMES, _refuse)


def graph_is_off() -> GraphOff:
    """What is said then."""
    return GraphOff(
        "the concept graph is switched off",
        cure="set `enabled = true` in the [graph] table of config.toml, then `agentd restart`",
    )


async def _refuse(_params: dict[str, Any], _peer: Peer) -> Any:
    raise graph_is_off()
