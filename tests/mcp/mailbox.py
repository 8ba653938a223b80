"""A server of the official SDK whose tool reads the file `MAILBOX`, a line for each mail, unless
`MAILBOX.away` is there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("mailbox")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def list_mail() -> str:
    """List the mails: who wrote, and what about."""
    if Path(f"{os.environ['MAILBOX']}.away").exists():
        raise ConnectionError("the mail server does not answer")
    lines = Path(os.environ["MAILBOX"]).read_text(encoding="utf-8").splitlines()
    mails = [dict(zip(("from", "subject"), line.split(": ", 1), strict=True)) for line in lines]
    return json.dumps({"mails": mails[::-1]})


server.run()
