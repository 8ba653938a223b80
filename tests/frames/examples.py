"""Calls that the daemon takes, one or several for each of its methods: what bad frames are made
of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.e2e.contract import filled
from tests.e2e.contract_faults import METHODS as REFUSED
from tests.e2e.contract_rows import FOLLOWED, METHODS, ROWS

Example = tuple[str, dict[str, Any]]

_PLACE = {"cwd": "/w", "mcpServers": []}
_HELLO = {
    "protocolVersion": 1,
    "clientInfo": {"name": "n", "version": "1"},
    "clientCapabilities": {"fs": {"readTextFile": True}, "_meta": {"agentd/notify": True}},
}
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_BLOCKS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "hello"},
    {"type": "text", "text": "see this paste", "_meta": {"agentd/paste": [[0, 3], [4, 8]]}},
    {"type": "text", "text": "remember that the ferry leaves at nine"},
    {"type": "text", "text": "/status"},
    {"type": "resource_link", "name": "n", "uri": "file:///n", "title": "t", "size": 3},
    {"type": "resource", "resource": {"uri": "file:///r", "text": "r", "mimeType": "text/plain"}},
    {"type": "image", "data": _PIXEL, "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
)
TALKING: tuple[Example, ...] = (
    ("initialize", _HELLO),
    ("initialize", {**_HELLO, "_meta": {"agentd/bind": "group:frames"}}),
    ("initialize", {**_HELLO, "_meta": {"agentd/permissions": "deny"}}),
    ("authenticate", {"methodId": "none"}),
    ("session/new", _PLACE),
    ("session/new", {**_PLACE, "_meta": {"agentd/key": "chat:frames"}}),
    ("session/load", {**_PLACE, "sessionId": "main"}),
    ("session/resume", {**_PLACE, "sessionId": "chat:frames"}),
    ("session/fork", {**_PLACE, "sessionId": "chat:frames"}),
    ("session/close", {"sessionId": "chat:frames"}),
    ("session/delete", {"sessionId": "chat:gone"}),
    ("session/list", {"cwd": "/w", "cursor": "100"}),
    ("session/set_mode", {"sessionId": "chat:frames", "modeId": "ask"}),
    (
        "session/set_config_option",
        {"sessionId": "chat:frames", "configId": "mode", "value": "auto"},
    ),
    *(
        ("session/prompt", {"sessionId": "chat:frames", "prompt": [block], "_meta": {"a": 1}})
        for block in _BLOCKS
    ),
    (
        "session/prompt",
        {
            "sessionId": "main",
            "prompt": list(_BLOCKS[:2]),
            "_meta": {"agentd/messageId": "m1", "agentd/patience": 0},
        },
    ),
)
NOTICES: tuple[Example, ...] = (
    ("session/cancel", {"sessionId": "main"}),
    ("$/cancel_request", {"requestId": 1}),
    ("$/progress", {}),
)


def own(folder: str) -> Sequence[Example]:
    """Those of agentd's own methods; what they name in the file system is below `folder`."""
    made = {"it": "1", "one": "a", "other": "b"}
    rows = [(row.method, filled(row.params, made)) for row in ROWS if row.method]
    rows += [(method, params) for method, params, _ in METHODS]
    rows += [(method, {}) for method in FOLLOWED]
    refused = [(name, params) for name, params, _, _ in REFUSED if isinstance(params, dict)]
    found = [*((f"_agentd/{method}", params) for method, params in rows), *refused]
    return [_below(folder, example) for example in found]


def _below(folder: str, example: Example) -> Example:
    method, _params = example
    return (method, {"file": f"{folder}/new.tar.gz"}) if method == "_agentd/backup" else example
