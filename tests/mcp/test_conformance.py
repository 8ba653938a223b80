"""The client and the scenarios of `@modelcontextprotocol/conformance`, whose servers are not
ours.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0  # seconds: each starts a Node and a Python

PASSED = (
    "initialize",
    "tools_call",
    "sse-retry",
    "elicitation-sep1034-client-defaults",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
)


@pytest.mark.skipif(
    shutil.which("conformance") is None,
    reason="needs Node 22 and `npm install -g @modelcontextprotocol/conformance@0.1.16`",
)
@pytest.mark.parametrize("scenario", PASSED)
async def test_the_client_passes_the_scenario(scenario: str, tmp_path: Path) -> None:
    run = await asyncio.create_subprocess_exec(
        *("conformance", "client", "--scenario", scenario, "--timeout", "60000"),
        *("--command", f"{sys.executable} -m tests.mcp.conformance_client"),
        *("--output-dir", str(tmp_path)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await run.communicate()
    assert run.returncode == 0, said.decode()[-3000:]
    assert b" 0 failed" in said
