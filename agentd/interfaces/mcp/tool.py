"""The tool of an MCP server as a Tool of the engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import structlog

from agentd.core.errors import ToolFailed
from agentd.core.form import UNASKED, FormAction, FormAnswer, InputForm
from agentd.core.message import JsonObject
from agentd.core.ports import FormAsker, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.text import shorten
from agentd.core.tool import Approval, ToolCall, ToolOutput
from agentd.core.turn import SessionKind
from agentd.interfaces.mcp.catalogue import CatalogueEntry, Definition
from agentd.interfaces.mcp.link import Fill, ServerFault
from agentd.interfaces.mcp.schema import flat, mismatch
from agentd.interfaces.mcp.server import ToolServer
from agentd.interfaces.tools.fence import in_backticks, printable

log = structlog.get_logger()

_QUESTION = 2000  # characters of a server's message to the owner
_WORDS = 300  # characters of a description in prompts
_AROUND = 400  # characters reserved for the backticks and the line before them
_OUTSIDE = frozenset({"refused", "died"})  # kinds of fault that quote the server


class McpTool:
    """One tool of one server."""

    def __init__(
        self,
        server: ToolServer,
        entry: CatalogueEntry,
        *,
        vouched: bool,
        most: int,
        forms: FormAsker | None = None,
    ) -> None:
        """`vouched`: the owner has allowed the tool by name. `most`: characters of an answer that
        the model gets. `forms` has the owner fill in values that the server requests.
        """
        self._forms = forms
        self._server = server
        self._tool = entry.now.name
        self._most = most
        self.name = f"{server.name}.{self._tool}"
        self.told = entry.told
        self.spec = self._spec(entry.told, vouched=vouched)

    def _spec(self, told: Definition, *, vouched: bool) -> ToolSpec:
        is_asked = self._server.settings.permission_of(self._tool) == "ask"
        # Only the server claims that it is read-only: believed if the owner vouches for the tool.
        reads = told.reads and vouched
        return ToolSpec(
            self.name,
            told.line[:_WORDS],
            told.schema,
            Effect.READ_ONLY if reads else Effect.EXTERNAL,
            kind="read" if told.reads else "other",
            asks=is_asked,
        )

    def check(self, call: ToolCall) -> None:
        """Raise ToolFailed for an input that does not fit the schema that the model was given."""
        _check(call, self.told)

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Call the server and return its answer, tainted, in backticks. A ServerFault becomes an
        error output. Raises ToolFailed if the definition has changed and the owner does not accept
        it.
        """
        try:
            await self._server.refresh()
            await self._accept(call, host)
            answer = await self._server.call(
                self._tool, dict(call.input), host.tell, self._filler(call, host)
            )
        except ServerFault as fault:
            outside = fault.kind in _OUTSIDE
            own = f"{fault.message}." + (f" The user can: {fault.cure}." if fault.cure else "")
            said = in_backticks(fault.message) if outside else own
            text = f"{call.name} failed ({fault.kind}): {said}"
            return ToolOutput(text, is_error=True, tainted=outside)
        text = shorten(printable(answer.text), self._most - _AROUND)
        how = "failed" if answer.is_error else "answered"
        return ToolOutput(
            f"{call.name} {how}:\n{in_backticks(text)}", answer.is_error, tainted=True
        )

    def _filler(self, call: ToolCall, host: ToolHost) -> Fill | None:
        """Return the function that has the owner fill in a form during this call; None in turns in
        which nobody may be asked.
        """
        forms = self._forms
        if forms is None or call.origin.is_silent or call.kind is not SessionKind.OWNER:
            return None

        async def fill(message: str, schema: Mapping[str, Any]) -> FormAnswer:
            fields = flat(schema)
            if fields is None:
                return UNASKED
            form = InputForm(self._server.name, printable(message)[:_QUESTION], fields)
            with host.paused():
                answer = await forms.fill(call.session, form)
            if answer.action is not FormAction.ACCEPT:
                return answer
            content = {**_defaults(fields), **answer.content}
            if wrong := mismatch(content, {**fields, "additionalProperties": False}):
                log.warning("mcp_form_not_fitting", server=self._server.name, reason=wrong[:100])
                return FormAnswer(FormAction.CANCEL)
            return FormAnswer(FormAction.ACCEPT, content)

        return fill

    async def _accept(self, call: ToolCall, host: ToolHost) -> None:
        """Ask the owner about a changed definition before the call. Raises ToolFailed if he does
        not accept it, the tool is gone, or the input does not fit the new schema.
        """
        entry = self._server.entries().get(self._tool)
        if entry is None:
            raise ToolFailed(f"{self._server.name} has no tool {self._tool!r} any more")
        if entry.is_changed:
            if not await host.approve(_change(self.name, entry)):
                msg = f"{self.name} is not what it was, and the user has not accepted the change"
                raise ToolFailed(msg, cure="Tell him; do not call it again.")
            if self._server.entries().get(self._tool) != entry:
                raise ToolFailed(f"{self.name} has changed once more while the user was asked")
            self._server.accept(self._tool)
        _check(call, entry.now)


def _defaults(schema: JsonObject) -> dict[str, Any]:
    fields = schema["properties"].items()
    return {name: field["default"] for name, field in fields if "default" in field}


def _check(call: ToolCall, definition: Definition) -> None:
    if wrong := mismatch(call.input, definition.schema):
        schema = json.dumps(dict(definition.schema), ensure_ascii=False)
        raise ToolFailed(
            f"the input does not fit {call.name}: {wrong}", cure=f"its input is {schema}"
        )


def _change(name: str, entry: CatalogueEntry) -> Approval:
    """Return the question about a changed definition: the old and the new words, or the new ones of
    a new tool.
    """
    before = _words(entry.known) if entry.known else ""
    after = _words(entry.now)
    parts = ["Before:", before, "", "Now:", after] if before else ["New:", after]
    return Approval(
        f"Accept what {name} is now",
        hashlib.sha256(f"{name}\0{entry.now.pin}".encode()).hexdigest(),
        new_text="\n".join(parts),
        warnings=("the server describes this tool otherwise than when you came to know it",),
    )


def _words(definition: Definition) -> str:
    schema = json.dumps(dict(definition.schema), ensure_ascii=False, indent=2)
    return f"{definition.description}\n{schema}"
