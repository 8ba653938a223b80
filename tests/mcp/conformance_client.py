"""agentd's client as the conformance suite wants one: `python -m tests.mcp.conformance_client URL`
gets to know the server, logs in where that is wanted, and calls each of its tools once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agentd.core.errors import AgentdError
from agentd.core.form import FormAction, FormAnswer, InputForm
from agentd.core.turn import SessionKey
from agentd.interfaces.mcp.link import LOGIN_NEEDED, ServerFault
from agentd.interfaces.mcp.mcp_source import McpSource
from tests.mcp.logging_in import LetterBox, letters
from tests.mcp.servers import Asked, call, request

DOCUMENT = "https://conformance-test.local/client-metadata.json"
TRIES = 3


class Filler:
    """A user who leaves every field of a form as it is."""

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        return FormAnswer(FormAction.ACCEPT, {})


def given(schema: dict[str, Any]) -> dict[str, Any]:
    """An input that fits."""
    kinds = {"number": 3, "integer": 3, "boolean": True, "string": "x"}
    fields = schema.get("properties", {}).items()
    return {name: kinds.get(field.get("type"), "x") for name, field in fields}


async def use(box: LetterBox) -> None:
    """Call each tool once. Raises ServerFault where a login is needed."""
    await box.server.refresh()
    tool_source = McpSource((box.server,), frozenset(), forms=Filler())
    for name, entry in box.server.entries().items():
        found = tool_source.find(call(f"letters.{name}", given(dict(entry.now.schema))), request())
        assert found is not None
        tool, asked = found
        print(await tool.run(asked, Asked()), file=sys.stderr)
        if (fault := box.server.fault) is not None and fault.kind == LOGIN_NEEDED:
            raise fault


async def main(url: str) -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    settings: dict[str, Any] = {} if scenario.startswith("auth/") else {"auth": ""}
    environ = dict(os.environ)
    if "client_id" in context:
        settings |= {"client_id": context["client_id"], "client_secret": "THE_SECRET"}
        environ["THE_SECRET"] = context["client_secret"]
    elif scenario == "auth/basic-cimd":
        settings["client_id"] = DOCUMENT
    with tempfile.TemporaryDirectory() as folder:
        async with letters(Path(folder), url, environ=environ, **settings) as box:
            for _ in range(TRIES):
                try:
                    await use(box)
                    break
                except ServerFault as fault:
                    print(fault.message, file=sys.stderr)
                    if fault.kind != LOGIN_NEEDED:
                        raise
                    try:
                        await box.log_in()
                    except AgentdError as error:
                        print(error.message, file=sys.stderr)
                        break


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
