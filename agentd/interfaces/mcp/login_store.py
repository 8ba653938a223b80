"""Logins to servers, kept in files for the owner alone; no backup holds them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog

from agentd.core.errors import AgentdError
from agentd.core.paths import ensure_private_dir, write_private
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.link import LOGIN_NEEDED, ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer

log = structlog.get_logger()

_LARGEST = 256 * 1024  # bytes of such a file
_EARLY = 60.0  # seconds before its end in which a token is renewed


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """What a login has given. `access` and `refresh` are secrets, as is `client_secret`; `expires_at` counts
    in seconds since 1970, None where the service did not say. `missing` are rights that the service has
    asked for since; `ended` says why it is of no use any more, "" while it is.
    """

    access: str
    refresh: str
    expires_at: float | None
    scope: str
    client_id: str
    client_secret: str
    client_method: str  # how the client proves itself at the token endpoint
    token_endpoint: str
    resource: str  # what the tokens are for; "" where that is not to be said
    missing: str = ""
    ended: str = ""

    def __repr__(self) -> str:
        return f"KeptLogin({self.token_endpoint})"


class LoginStore:
    """The login of one server. It is bound to the address and the client that are configured: another
    address never gets it.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        server: McpServer,
        redactor: Redactor,
        now: Callable[[], datetime],
    ) -> None:
        """Without a folder it is kept in memory alone. What a file holds is hidden from all texts from now
        on.
        """
        self._file = folder / f"{name}.json" if folder else None
        self._name = name
        self._bound = hashlib.sha256(
            json.dumps([server.url, server.client_id, server.client_secret]).encode()
        ).hexdigest()
        self._redactor = redactor
        self._now = now
        self._changing = asyncio.Lock()
        self.login = self._read()
        self._hide(self.login)

    async def keep(self, login: KeptLogin) -> None:
        """Take it into use, durably. Raises AgentdError where it cannot be written; it is in use then all the
        same.
        """
        self._hide(login)
        self.login = login
        if self._file is None:
            return
        text = json.dumps({"bound": self._bound, **asdict(login)})
        try:
            async with self._changing:
                if self.login is login:  # it may have been deleted meanwhile
                    await asyncio.to_thread(_write, self._file, text)
        except OSError as error:
            raise AgentdError(
                f"the login to {self._name} cannot be kept: {error.strerror}",
                cure="make room, or the state directory writable; then log in once more",
            ) from error

    async def renew(self, old: KeptLogin, login: KeptLogin) -> None:
        """Take `login` into use in place of `old`, durably if that is possible: else the next start needs a
        login. One that was deleted or replaced meanwhile stays so.
        """
        if self.login is not old:
            return
        try:
            await self.keep(login)
        except AgentdError:
            log.warning("mcp_login_not_kept", server=self._name)

    async def end(self, why: str) -> None:
        """It is of no use any more. The tokens are forgotten."""
        if self.login is not None:
            gone = replace(self.login, access="", refresh="", ended=why)
            await self.renew(self.login, gone)

    async def want(self, scope: str) -> None:
        """The service asks for rights that it does not have."""
        if self.login is not None:
            await self.renew(self.login, replace(self.login, missing=scope))

    async def forget(self) -> bool:
        """Whether there was one; there is none now. Raises AgentdError where the file stays."""
        had, self.login = self.login is not None, None
        if self._file is not None:
            try:
                async with self._changing:
                    await asyncio.to_thread(self._file.unlink, missing_ok=True)
            except OSError as error:
                raise AgentdError(
                    f"the login to {self._name} cannot be deleted: {error.strerror}",
                    cure=f"delete {self._file} by hand",
                ) from error
        return had

    def is_stale(self, login: KeptLogin) -> bool:
        """Whether it should be renewed before it is used."""
        if not login.refresh or login.expires_at is None:
            return False
        return self._now().timestamp() + _EARLY >= login.expires_at

    def expiry(self, seconds: int | None) -> float | None:
        """When a token expires that is good for so many seconds from now."""
        return None if seconds is None else self._now().timestamp() + seconds

    def fault(self) -> ServerFault | None:
        """Why nobody can be asked with it; None where it can be tried."""
        if self.login is None:
            return self.needed("nobody has logged in to it")
        if self.login.ended:
            return self.needed(f"the login to it has ended: {self.login.ended}")
        return None

    def needed(self, why: str) -> ServerFault:
        """A fault that a login cures."""
        return ServerFault(LOGIN_NEEDED, why, cure=f"`agentd mcp login {self._name}`")

    def _hide(self, login: KeptLogin | None) -> None:
        if login is not None:
            for secret in (login.access, login.refresh, login.client_secret):
                self._redactor.add(secret)

    def _read(self) -> KeptLogin | None:
        if self._file is None:
            return None
        try:
            return self._parsed(self._file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            log.warning("mcp_login_unreadable", server=self._name)
            return None

    def _parsed(self, file: Path) -> KeptLogin | None:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
                log.warning("mcp_login_readable_by_others", server=self._name)
                return None
            kept = json.loads(opened.read(_LARGEST))
        if kept.pop("bound", None) != self._bound:
            return None
        expires_at = kept.pop("expires_at")
        if not all(isinstance(text, str) for text in kept.values()):
            raise TypeError
        return KeptLogin(expires_at=None if expires_at is None else float(expires_at), **kept)


def _write(file: Path, text: str) -> None:
    ensure_private_dir(file.parent)
    write_private(file, text)
