"""The tool `graph_recall`: answers a question over several connected facts."""

from __future__ import annotations

from agentd.core.errors import GraphError
from agentd.core.ports import ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.interfaces.tools.fence import in_backticks
from agentd.memory.graph.service import GraphService

_SPEC = ToolSpec(
    "graph_recall",
    "Facts over several steps, like 'my sister's employer's city', not in front of you. Ask "
    "in the user's words.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
    Effect.READ_ONLY,
    "search",
)


class GraphRecall:
    """Asks the concept graph, within what this kind of session may know."""

    spec = _SPEC

    def __init__(self, service: GraphService) -> None:
        self._service = service

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the facts, one a line in backticks, or why there are none. Tainted if other agents
        stated one.
        """
        try:
            found = await self._service.recall(str(call.input["query"]), call.session, call.kind)
        except GraphError as error:
            return ToolOutput(f"{error.message}\n{error.cure}".strip(), is_error=True)
        told = found.answer.as_prompt()
        for name, said in found.tellers.items():
            told += f"\n(Not the user's word, but that of {name}: {'; '.join(said)})"
        return ToolOutput(in_backticks(told), tainted=found.is_foreign)
