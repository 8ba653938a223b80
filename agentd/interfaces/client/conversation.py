"""One session over any number of connections: what is said arrives exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from agentd.core.errors import AgentdError, Busy, DaemonUnreachable
from agentd.core.spans import Spans
from agentd.interfaces.client.attachments import Attachment
from agentd.interfaces.client.connection import (
    CURE,
    MAX_FRAME_BYTES,
    WITHDRAWN,
    DaemonConnection,
    Params,
    Watcher,
    alone,
    connect,
    introduction,
)
from agentd.interfaces.client.remote_error import ConnectionLost, RemoteError, exit_status
from agentd.interfaces.client.reply import marks

PATIENCE = 30.0  # seconds that a message waits for a daemon that went away
_FIRST_RETRY_SECONDS = 0.05
_LAST_RETRY_SECONDS = 1.0
_CALL_SECONDS = 30.0
_CLOSE_SECONDS = 2.0


class Companion(Watcher, Protocol):
    """A watcher that also hears how the connection fares."""

    def lost(self) -> None:
        """The daemon has gone."""

    def regained(self) -> None:
        """The daemon is back. What a running turn has shown so far comes again after this."""

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """An image of `size` bytes goes along with `made` bytes."""


class Conversation:
    """A session that outlives the daemon. Use `join_session` to get one."""

    def __init__(
        self,
        sockets: Sequence[Path],
        session: str,
        companion: Companion,
        *,
        deny: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        self.session = session
        self._sockets = sockets
        self._companion = companion
        self._deny = deny
        self._patience = patience
        self._connection: DaemonConnection | None = None
        self._largest_image = 0  # bytes; what the daemon takes
        self._gap = False  # the daemon went away, and nobody was told yet that it is back
        self._ready = asyncio.Event()
        self._is_sent = False  # a daemon may have the message that is being said
        self._accepted = asyncio.Event()  # the daemon of this connection has the message

    async def say(
        self,
        text: str,
        message_id: str,
        images: Sequence[Attachment] = (),
        pasted: Spans = (),
        wait: int | None = None,
        *,
        until_back: bool = False,
    ) -> Any:
        """The result of one prompt, a JSON object. `pasted` are the spans of the text that were not
        typed; it waits `wait` seconds at most for a service that is away (None: as the daemon is
        configured). Raises InvalidRequest for an image that is too large
        and cannot be made smaller.

        A daemon that goes away meanwhile gets the same message again when it is back: by its id it
        knows what it has done already. Raises RemoteError for a failed turn, DaemonUnreachable
        when nobody is back within the patience; with `until_back` it has no end.
        """
        self._is_sent = False
        self._accepted.clear()
        while True:
            try:
                connection = await self._attached(None if until_back else self._patience)
            except DaemonUnreachable as error:
                raise self._unsaid(error) from error
            images = [await self._fitting(image) for image in images]
            words = [_words(text, pasted)] if text or not images else []
            params = {
                "sessionId": self.session,
                "prompt": [*(image.block() for image in images), *words],
                "_meta": {
                    "agentd/messageId": message_id,
                    **({} if wait is None else {"agentd/patience": wait}),
                },
            }
            self._is_sent = True
            try:
                return await connection.call("session/prompt", params)
            except ConnectionLost:
                self._forget(connection)
            except RemoteError as error:
                if error.rpc_code == WITHDRAWN:
                    return {"stopReason": "cancelled"}
                if error.reason != "shutting_down":
                    raise
                await self._leave(connection)

    async def _fitting(self, image: Attachment) -> Attachment:
        fitting = await image.fitting(self._largest_image)
        if fitting is not image:
            self._companion.made_smaller(image.name, len(image.data), len(fitting.data))
        return fitting

    async def call(self, method: str, params: Params | None = None, *, within: float) -> Any:
        """The result of a method that may be lost. Raises what `Connection.call` raises, and
        DaemonUnreachable.
        """
        connection = await self._attached(self._patience)
        return await connection.call(method, params, within=within)

    async def cancel(self) -> None:
        """Ask for the end of the running turn; it then ends with the stop reason `cancelled`. A daemon that goes
        away before is asked again when it is back and knows which message is meant, so this goes on
        until it is cancelled, which whoever has called `say` does when that returns.
        """
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionLost):
                await connection.notify("session/cancel", {"sessionId": self.session})
            if self._accepted.is_set():
                await connection.wait_closed()
                self._forget(connection)
        while True:  # a daemon that has not been told the message yet, or is to be told it again
            connection = await self._attached(None)
            await self._accepted.wait()
            with suppress(ConnectionLost):
                await connection.take_back("session/prompt")
                await connection.wait_closed()
            self._forget(connection)

    async def close(self) -> None:
        """Tell the daemon, if it is there, that this client leaves the session for now; what runs goes on. A
        daemon that does not answer soon is not waited for.
        """
        if (connection := self._connection) is None:
            return
        params = {"sessionId": self.session, "_meta": {"agentd/cancel": False}}
        with suppress(AgentdError):  # it loses nothing: what was said is read when it has rested
            await connection.call("session/close", params, within=_CLOSE_SECONDS)

    def notified(self, method: str, params: Params) -> None:
        """Hear what the daemon tells, and pass it on."""
        if method == "_agentd/accepted":
            self._accepted.set()
        self._companion.notified(method, params)

    async def requested(self, method: str, params: Params) -> Params | None:
        """Let the companion answer."""
        return await self._companion.requested(method, params)

    async def keep(self) -> None:
        """Stay attached. Raises DaemonUnreachable if the very first attempt fails, RemoteError when
        the daemon refuses the session.
        """
        attached_before = False
        pause = _FIRST_RETRY_SECONDS
        while True:
            try:
                async with connect(self._sockets, self) as connection:
                    await self._attach(connection)
                    self._connection = connection
                    self._ready.set()
                    attached_before, pause = True, _FIRST_RETRY_SECONDS
                    await connection.wait_closed()
                    self._forget(connection)
                    self._gap = True
                    self._companion.lost()
            except (DaemonUnreachable, RemoteError, Busy) as error:
                passing = isinstance(error, DaemonUnreachable) or exit_status(error) == 75
                if not attached_before or not passing:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_SECONDS)

    async def wait_attached(self) -> None:
        """Return when the session is attached."""
        await self._ready.wait()

    @property
    def is_attached(self) -> bool:
        """Whether a daemon is there."""
        return self._ready.is_set()

    @property
    def is_sent(self) -> bool:
        """Whether a daemon may have the message that is being said, or was said last."""
        return self._is_sent

    async def _attached(self, patience: float | None) -> DaemonConnection:
        """Raises DaemonUnreachable when nobody is back after so many seconds (None: never)."""
        try:
            async with asyncio.timeout(patience):
                await self._ready.wait()
        except TimeoutError as error:
            msg = f"the daemon has been gone for {patience:g} s"
            raise DaemonUnreachable(msg, cure=CURE) from error
        assert self._connection is not None
        return self._connection

    def _unsaid(self, error: DaemonUnreachable) -> DaemonUnreachable:
        """The error, with what has become of the message."""
        if self._is_sent:
            what = "it had the message, and goes on with it when it is back if it took it"
            return DaemonUnreachable(f"{error.message}; {what}", cure=CURE)
        told = f"{error.message}; the message was NOT sent"
        return DaemonUnreachable(told, cure=f"{CURE}, then send the message again")

    async def _leave(self, connection: DaemonConnection) -> None:
        """Wait for the end of a daemon that is stopping."""
        try:
            async with asyncio.timeout(self._patience):
                await connection.wait_closed()
        except TimeoutError as error:
            raise DaemonUnreachable("the daemon is stopping and does not end", cure=CURE) from error
        self._forget(connection)

    def _forget(self, connection: DaemonConnection) -> None:
        if self._connection is connection:
            self._connection = None
            self._ready.clear()
            self._accepted.clear()

    async def _attach(self, connection: DaemonConnection) -> None:
        hello = introduction(deny=self._deny, forms=not self._deny)
        told = marks(await connection.call("initialize", hello, within=_CALL_SECONDS))
        self._largest_image = _number(told, "agentd/maxImageBytes", 0)
        connection.max_frame_bytes = _number(told, "agentd/maxFrameBytes", MAX_FRAME_BYTES)
        if self._gap:
            self._gap = False
            self._companion.regained()
        place = {"cwd": str(Path.cwd()), "mcpServers": []}
        try:
            await connection.call(
                "session/resume", {"sessionId": self.session, **place}, within=_CALL_SECONDS
            )
        except RemoteError as error:
            if error.reason != "not_found":
                raise
            wanted = {**place, "_meta": {"agentd/key": self.session}}
            made = await connection.call("session/new", wanted, within=_CALL_SECONDS)
            self.session = made["sessionId"]


def _words(text: str, pasted: Spans) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    return {**block, "_meta": {"agentd/paste": pasted}} if pasted else block


def _number(told: Params, name: str, otherwise: int) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else otherwise


@asynccontextmanager
async def join_session(
    sockets: Sequence[Path],
    session: str,
    companion: Companion,
    *,
    deny: bool = False,
    patience: float = PATIENCE,
) -> AsyncIterator[Conversation]:
    """An attached conversation; `deny` says that nobody is there to allow anything.

    Raises DaemonUnreachable, RemoteError.
    """
    conversation = Conversation(sockets, session, companion, deny=deny, patience=patience)
    async with alone(), asyncio.TaskGroup() as group:
        keeping = group.create_task(conversation.keep())
        try:
            await conversation.wait_attached()
            yield conversation
        finally:
            keeping.cancel()
