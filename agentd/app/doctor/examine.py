"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import structlog

from agentd.core.errors import AgentdError
from agentd.core.health import Finding

log = structlog.get_logger()


class Check(Protocol):
    """One thing that can be wrong."""

    @property
    def code(self) -> str:
        """Its stable name."""

    async def look(self) -> Finding:
        """How it is now. Raises AgentdError when it cannot be told, which is a failure too."""


async def examine(checks: Iterable[Check]) -> tuple[Finding, ...]:
    """What each check finds, in their order."""
    return tuple([await _run_check(check) for check in checks])


async def _run_check(check: Check) -> Finding:
    try:
        return await check.look()
    except AgentdError as error:
        return Finding.fail(check.code, error.message, error.cure)
    except OSError as error:
        text = f"{error.filename or 'a file'} cannot be looked at: {error.strerror}"
        return Finding.fail(check.code, text, "see to it that the owner can read it")
    except Exception:
        # A check that breaks must not hide what the others find.
        log.exception("check_crashed", check=check.code)
        return Finding.fail(check.code, "the check itself broke", "read the log: `agentd logs`")
