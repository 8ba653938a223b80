"""Runs the checks of `agentd doctor`, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import structlog

from agentd.core.errors import AgentdError
from agentd.core.health import Finding

log = structlog.get_logger()


class Check(Protocol):
    """A check of one thing that can be wrong."""

    @property
    def code(self) -> str:
        """The check's name, which never changes."""

    async def look(self) -> Finding:
        """Return what the check finds now. Raises AgentdError or OSError if that cannot be found
        out; `examine` reports this as a failure.
        """


async def examine(checks: Iterable[Check]) -> tuple[Finding, ...]:
    """Run the checks; return their findings in the same order. Raises nothing."""
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
        # A bug in one check must not hide the findings of the others.
        log.exception("check_crashed", check=check.code)
        return Finding.fail(check.code, "the check itself broke", "read the log: `agentd logs`")
