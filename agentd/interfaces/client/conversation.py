"""A session over any number of connections: each message arrives exactly once."""

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
    """A watcher that is also told about the connection."""

    def lost(self) -> None:
        """Handle the loss of the daemon."""

    def regained(self) -> None:
        """Handle the daemon's return. What a running turn has shown so far is sent again after
        this.
        """

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """Note that an image of `size` bytes is sent scaled down to `made` bytes."""


class Conversation:
    """A session that survives restarts of the daemon. `join_session` makes one."""

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
        self._largest_image = 0  # bytes that the daemon takes; 0: none
        # The daemon went away, and the companion has not been told of its return yet.
        self._gap = False
        self._ready = asyncio.Event()
        self._is_sent = False  # a daemon may have the current message
        self._accepted = asyncio.Event()  # the daemon of this connection has confirmed the message

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
        """Send a prompt and return its result, a JSON object. `pasted` are the spans of the text
        that were not typed. The daemon waits at most `wait` seconds for a model service that is
        away (None: as configured).

        If the daemon goes away, the same message is sent again when it is back; the message id
        tells the daemon what it has already done. Raises RemoteError for a failed turn,
        DaemonUnreachable if no daemon is back within the patience (never with `until_back`),
        InvalidRequest for an image that is too large and cannot be scaled down.
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
        """Call a method without sending it again after a loss. Raises what `DaemonConnection.call`
        raises, and DaemonUnreachable.
        """
        connection = await self._attached(self._patience)
        return await connection.call(method, params, within=within)

    async def cancel(self) -> None:
        """Cancel the running turn, which then ends with the stop reason `cancelled`. If the daemon
        goes away first, it is asked again when it is back and has the message; so this never
        returns: the caller of `say` cancels it when `say` returns.
        """
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionLost):
                await connection.notify("session/cancel", {"sessionId": self.session})
            if self._accepted.is_set():
                await connection.wait_closed()
                self._forget(connection)
        while True:  # the daemon does not have the message yet, or gets it again
            connection = await self._attached(None)
            await self._accepted.wait()
            with suppress(ConnectionLost):
                await connection.take_back("session/prompt")
                await connection.wait_closed()
            self._forget(connection)

    async def close(self) -> None:
        """Tell the daemon, if it is there, that this client leaves the session; running turns go
        on. Waits at most `_CLOSE_SECONDS` for the answer.
        """
        if (connection := self._connection) is None:
            return
        params = {"sessionId": self.session, "_meta": {"agentd/cancel": False}}
        with suppress(
            AgentdError
        ):  # nothing is lost: the conversation is read for facts once it has been idle
            await connection.call("session/close", params, within=_CLOSE_SECONDS)

    def notified(self, method: str, params: Params) -> None:
        """Note the confirmation of a message, and pass the notification on to the companion."""
        if method == "_agentd/accepted":
            self._accepted.set()
        self._companion.notified(method, params)

    async def requested(self, method: str, params: Params) -> Params | None:
        """Let the companion answer the request."""
        return await self._companion.requested(method, params)

    async def keep(self) -> None:
        """Keep the session attached, reconnecting after each loss. Raises DaemonUnreachable if the
        first attempt fails, RemoteError if the daemon refuses the session.
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
        """Whether the session is attached to a daemon."""
        return self._ready.is_set()

    @property
    def is_sent(self) -> bool:
        """Whether a daemon may have the current, or else the last, message."""
        return self._is_sent

    async def _attached(self, patience: float | None) -> DaemonConnection:
        """Return the connection, waiting for it. Raises DaemonUnreachable after `patience` seconds
        (None: never).
        """
        try:
            async with asyncio.timeout(patience):
                await self._ready.wait()
        except TimeoutError as error:
            msg = f"the daemon has been gone for {patience:g} s"
            raise DaemonUnreachable(msg, cure=CURE) from error
        assert self._connection is not None
        return self._connection

    def _unsaid(self, error: DaemonUnreachable) -> DaemonUnreachable:
        """Return the error with what has become of the message."""
        if self._is_sent:
            what = "it had the message, and goes on with it when it is back if it took it"
            return DaemonUnreachable(f"{error.message}; {what}", cure=CURE)
        told = f"{error.message}; the message was NOT sent"
        return DaemonUnreachable(told, cure=f"{CURE}, then send the message again")

    async def _leave(self, connection: DaemonConnection) -> None:
        """Wait until a daemon that is stopping has closed the connection."""
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
    """Yield a conversation that is attached to the session; a session that does not exist is made.
    `deny`: no user is present to allow anything. Raises DaemonUnreachable, RemoteError.
    """
    conversation = Conversation(sockets, session, companion, deny=deny, patience=patience)
    async with alone(), asyncio.TaskGroup() as group:
        keeping = group.create_task(conversation.keep())
        try:
            await conversation.wait_attached()
            yield conversation
        finally:
            keeping.cancel()
