"""`facts query` and `facts graph`: how what the agent knows hangs together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from agentd.core.errors import GraphOff
from agentd.interfaces.commands.declaration import Group, Param
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.memory.graph.service import GraphAnswers

GRAPH = Group("facts")

_MOST = 50  # concepts of a picture: no way finds more

Form = Literal["picture", "0c", "zero", "l0", "l1", "l2", "prompt"]
Way = Literal["paths", "breadth", "activation"]


class GraphCommands:
    """The graph, asked."""

    def __init__(self, graph: GraphAnswers) -> None:
        self._graph = graph

    # Both are shown by functions of the command line: what reads or draws the graph is loaded with them alone.

    @GRAPH.command(fields)
    async def query(
        self,
        question: Annotated[
            str,
            Param(
                '"FIND concept FROM user BY paths" (or breadth, activation), or any text: '
                "what it names is found."
            ),
        ],
        *,
        limit: Annotated[int, Param("How many facts about a text.", least=1, most=50)] = 10,
    ) -> dict[str, Any]:
        """Ask how what the agent knows hangs together."""
        return await self._graph.ask(question, limit)

    @GRAPH.command(fields)
    async def graph(
        self,
        name: Annotated[str, Param("What is in the middle, such as user.")],
        *,
        depth: Annotated[
            int | None,
            Param("How many facts away: 2 unless you say it, at most 4.", least=1),
        ] = None,
        most: Annotated[int, Param("How many concepts.", least=1, most=_MOST)] = 24,
        by: Annotated[
            Way, Param("By what is surest, by the fewest facts away, or by what comes to mind.")
        ] = "paths",
        form: Annotated[Form, Param()] = "picture",
    ) -> dict[str, Any]:
        """Draw what is known around a name."""
        return await self._graph.around(name, depth, most, by, form)


def graph_is_off() -> GraphOff:
    """What is said where there is no graph."""
    return GraphOff(
        "the concept graph is switched off",
        cure="set `enabled = true` in the [graph] table of config.toml, then `agentd restart`",
    )
