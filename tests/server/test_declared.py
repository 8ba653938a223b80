"""Declared commands on the socket: what clients send is checked before a command sees it."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.core.errors import InvalidRequest
from agentd.interfaces.acp.declared import _Params, methods, typed
from tests.commands.declared_tea import TEA, TeaCommands


class Client:
    def __init__(self) -> None:
        self.told: list[str] = []

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.told.append(method)


async def called(method: str, **params: Any) -> Any:
    tea = TeaCommands()
    await methods(TEA, tea)[f"_agentd/{method}"](params, Client())
    return tea.brewed[0]


async def test_a_method_has_the_defaults_and_the_keys_of_its_declaration() -> None:
    assert await called("tea/brew", kind="oolong", _meta={"x": 1}) == (
        *("oolong", 1, "", None),
        *(False, None, False, []),
    )
    given = {"in": "2h", "also": ["cake"], "milk": True, "lot": "a", "silently": True}
    given["spoons"] = [1, 2]
    assert await called("tea/brew", kind="mint", cups=9, **given) == (
        *("mint", 9, "2h", ["cake"]),
        *(True, "a", True, [1, 2]),
    )
    assert (await called("tea/brew", kind="mint", lot=4))[5] == 4


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "kind: Field required"),
        ({"kind": 1}, "kind: Input should be a valid string"),
        ({"kind": "x", "cups": 0}, "cups: Input should be greater than or equal to 1"),
        ({"kind": "x", "cups": 10}, "cups: Input should be less than or equal to 9"),
        ({"kind": "x", "cups": "2"}, "cups: Input should be a valid integer"),
        ({"kind": "x", "within": "2h"}, "within: Extra inputs are not permitted"),
        ({"kind": "x", "in": 2}, "in: Input should be a valid string"),
        ({"kind": "x", "spoons": [1, 0]}, "spoons.1: Input should be greater than or equal to 1"),
        ({"kind": "x", "spoons": [1] * 4}, "spoons: List should have at most 3 items"),
        ({"kind": "x", "spoons": None}, "spoons: Input should be a valid list"),
        ({"kind": "x", "size": "vast"}, "size: Input should be 'small' or 'large'"),
        ({"kind": "x", "also": ["a", "b", "c"]}, "also: List should have at most 2 items"),
    ],
    ids=lambda given: str(given)[:30],
)
async def test_what_does_not_fit_is_named_by_its_key(params: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await called("tea/brew", **params)
    assert refused.value.message.startswith(message)


async def test_a_command_that_wants_to_know_who_asks_is_told() -> None:
    client = Client()
    assert await methods(TEA, TeaCommands())["_agentd/tea/follow"]({}, client) == {}
    assert client.told == ["_agentd/tea"]


async def test_what_is_typed_in_a_chat_is_carried_out_by_the_same_parts() -> None:
    (command,) = typed(TEA, TeaCommands())
    assert (command.name, command.description, command.hint) == ("tea", "Make tea here", "which")
    assert await command.act("main", "mint") == "mint for main"


async def test_a_slash_command_for_owners_is_refused_where_others_are() -> None:
    (command,) = typed(TEA, TeaCommands())
    with pytest.raises(InvalidRequest) as refused:
        await command.act("group:family", "mint")
    assert (refused.value.message, refused.value.cure) == (
        "tea is not for this session",
        "say it in main or a chat",
    )


async def test_what_a_method_takes_is_read_when_it_is_first_called() -> None:
    routes = methods(TEA, TeaCommands())
    before = set(_Params.__subclasses__())  # held, so that none of them is collected meanwhile
    assert len(methods(TEA, TeaCommands())) == len(routes) > 1
    assert set(_Params.__subclasses__()) == before
    for _ in range(2):
        await routes["_agentd/tea/brew"]({"kind": "oolong"}, Client())
    assert len(set(_Params.__subclasses__()) - before) == 1
