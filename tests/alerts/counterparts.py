"""Services that alerts are sent to, on this machine: somebody else's mail server, and a web
server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

PASSWORD = "correct-horse-battery"


@dataclass
class Mailbox:
    """What a mail server has taken. It refuses everything while it is `closed`."""

    port: int = 0
    closed: bool = False
    logins: list[tuple[str, str]] = field(default_factory=list)
    taken: list[Message] = field(default_factory=list)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd calls it so
        if self.closed:
            return "451 the disk is full"
        content = envelope.content
        assert isinstance(content, bytes)
        self.taken.append(message_from_bytes(content, policy=default))
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: Any
    ) -> AuthResult:
        name, password = login.login.decode(), login.password.decode()
        self.logins.append((name, password))
        # A refusal that the authenticator has not told is told by the server.
        return AuthResult(success=password == PASSWORD, handled=False)

    @property
    def texts(self) -> list[str]:
        """The plain words of each mail."""
        return [plain(message) for message in self.taken]


def plain(message: Message, kind: str = "plain") -> str:
    """The words of a mail."""
    body = message.get_body((kind,))  # type: ignore[attr-defined]  # by the default policy
    return str(body.get_content())


@asynccontextmanager
async def a_mailbox() -> AsyncIterator[Mailbox]:
    """aiosmtpd, which takes a password."""
    box = Mailbox()
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(
            box,
            authenticator=box.authenticate,
            auth_require_tls=False,
            enable_SMTPUTF8=True,
        ),
        "127.0.0.1",
        0,
    )
    box.port = server.sockets[0].getsockname()[1]
    async with server:
        yield box


@dataclass
class Site:
    """A web server that keeps what it was sent, and answers with the next of its `statuses`, 200
    after the last.
    """

    port: int = 0
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    is_hanging: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length:")[2].split()[0])
            body = json.loads(await reader.readexactly(length))
            self.requests.append((head.split()[1], body))
            self.heads.append(head)
            if self.is_hanging:
                await reader.read()
                return
            status = self.statuses.pop(0) if self.statuses else 200
            place = f"location: http://127.0.0.1:{self.port}/elsewhere\r\n"
            writer.write(
                f"HTTP/1.1 {status} x\r\n{place}content-length: 2\r\nconnection: close\r\n\r\n{{}}".encode()
            )
            await writer.drain()
        finally:
            writer.close()

    @property
    def texts(self) -> list[str]:
        """The words of each message, of ntfy's and of plain JSON's."""
        return [str(body["message"]) for _, body in self.requests]


@asynccontextmanager
async def a_site(*statuses: int) -> AsyncIterator[Site]:
    """A web server."""
    site = Site(statuses=list(statuses))
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site
