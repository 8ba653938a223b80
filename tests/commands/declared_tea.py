"""A small group of commands, as an example of all that can be declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from agentd.interfaces.commands.declaration import Caller, Group, Param
from agentd.interfaces.commands.plain import fields

TEA = Group("tea")


class TeaCommands:
    """Remembers what was ordered."""

    def __init__(self) -> None:
        self.brewed: list[Any] = []

    @TEA.command(fields, seconds=7)
    async def brew(
        self,
        kind: Annotated[str, Param("Which.")],
        *,
        cups: Annotated[int, Param("How many.", least=1, most=9, usual=2)] = 1,
        within: Annotated[str, Param("How soon.", key="in")] = "",
        also: Annotated[list[str] | None, Param("With it.", length=(0, 2))] = None,
        milk: Annotated[bool, Param("With milk.", ("--milk",))] = False,
        lot: Annotated[int | str | None, Param("From this lot.")] = None,
        spoons: Annotated[Sequence[int], Param("For each.", least=1, length=(0, 3))] = (),
        size: Annotated[Literal["small", "large"], Param("How large.")] = "small",
        silently: bool = False,
    ) -> dict[str, Any]:
        """Make tea."""
        self.brewed.append((kind, cups, within, also, milk, lot, silently, list(spoons)))
        return {"kind": kind}

    @TEA.command(fields, name="follow", line=False)
    async def told(self, caller: Caller) -> dict[str, Any]:
        """Tell when tea is ready."""
        caller.notify("_agentd/tea", {})
        return {}

    @TEA.slash("tea", "Make tea here", "which", owners="tea is not for this session")
    async def typed(self, session: str, text: str) -> str:
        """Make tea where it was typed."""
        return f"{text} for {session}"
