"""One client's connection: frames in, calls in flight, answers out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import structlog
from msgspec import Struct

from agentd.core.errors import AgentdError, Busy, InvalidRequest, ShuttingDown
from agentd.core.offloading import offload
from agentd.core.ports import Clock
from agentd.interfaces.acp import frames
from agentd.interfaces.acp.faults import describe
from agentd.interfaces.acp.flow import Incoming, Outgoing, Unfinished, time_limit
from agentd.interfaces.acp.frames import CallId, Frame, FrameError, Notification, Request, Response
from agentd.interfaces.acp.listener import has_hung_up
from agentd.interfaces.acp.peer import (
    ClientRole,
    Handler,
    Listener,
    PeerGone,
    PeerRefused,
    PeerReply,
    Profile,
    Withdrawn,
)
from agentd.interfaces.acp.socket_settings import ServerSettings

log = structlog.get_logger()

_CANCEL = "$/cancel_request"  # the notification by which either side cancels its own call
_HELLO = "initialize"


class Routes(Struct, frozen=True):
    """The methods that clients may call, by name."""

    calls: Mapping[str, Handler]
    notifications: Mapping[str, Listener]


class Access(Struct, frozen=True):
    """The routes of the owner's connections and of bound ones."""

    owner: Routes
    bound: Routes

    def of(self, role: ClientRole) -> Routes:
        """Return the routes that exist for a connection of that role."""
        return self.owner if role.is_owner else self.bound


class AnswerTooLarge(AgentdError):
    """The answer does not fit into a frame."""

    code = "too_large"


class ClientConnection:
    """The Peer over a stream. A bad frame affects no call, and a failing call does not end the
    connection.
    """

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        access: Access,
        settings: ServerSettings,
        clock: Clock,
        unfinished: Unfinished,
    ) -> None:
        self.profile = Profile()
        reader, self._writer = streams
        self._incoming = Incoming(reader, settings.max_frame_bytes, unfinished, self._give_up)
        # Takes effect with the `initialize` that sets it, even before the answer.
        self.role = ClientRole()
        self._access = access
        self._settings = settings
        self._clock = clock
        self._outgoing = Outgoing(self._writer, settings, clock)
        self._in_flight: dict[asyncio.Task[None], CallId] = {}
        self._withdrawn: set[asyncio.Task[Any]] = set()
        self._asked: dict[CallId, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._reading: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._has_ended = False
        self._idle = asyncio.Event()  # no call is in flight
        self._idle.set()

    async def run(self) -> None:
        """Serve until the client leaves, is dropped, or `stop` is called."""
        try:
            if self._is_stopping:
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(self._outgoing.run(group))
                self._reading = group.create_task(self._read(group))
                # Not at the end of `_read`: a task that is cancelled before its first step runs
                # none of it.
                self._reading.add_done_callback(lambda _: self._end())
        finally:
            self.abort()

    def stop(self) -> None:
        """End the connection: calls in flight are answered with ShuttingDown, queued frames are
        still written.
        """
        self._is_stopping = True
        if self._reading is not None:
            self._reading.cancel()

    def abort(self) -> None:
        """End the connection at once; queued frames are lost."""
        self._writer.transport.abort()

    def send(self, frame: bytes) -> None:
        """Queue an encoded frame."""
        self._outgoing.send(frame)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification."""
        self.send(frames.encode(frames.notification(method, params)))

    async def wait_room(self) -> None:
        """Return when most of the queue is free, or the client has left."""
        await self._outgoing.wait_room()

    async def push(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification of any size once the queue is empty, or the client has left."""
        await self._outgoing.push(frames.encode(frames.notification(method, params)))

    def is_withdrawn(self) -> bool:
        """Return whether the client has cancelled the call of the current task."""
        return asyncio.current_task() in self._withdrawn

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Call a method of the client and return the result. Raises PeerGone, PeerRefused."""
        if self._has_ended or self._reading is None or self._reading.done():
            raise PeerGone
        call_id = f"agentd-{next(self._ids)}"
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[call_id] = answer
        self.send(frames.encode(frames.request(call_id, method, params)))
        try:
            return await answer
        except asyncio.CancelledError:
            self.notify(_CANCEL, {"requestId": call_id})
            raise
        finally:
            del self._asked[call_id]

    async def _read(self, group: asyncio.TaskGroup) -> None:
        try:
            while await self._take_next(group):
                # A client that sends without pause must not hold up the others.
                await asyncio.sleep(0)
                await self.wait_room()
            await self._finish_calls(group)
        except FrameError as error:
            self._refuse(error)
            self._end()
            await self._discard(group)
        except OSError:
            log.debug("client_left_abruptly", client=self.profile.name)
        finally:
            self._incoming.close()

    def _give_up(self) -> None:
        """Drop the client: its frame has been unfinished for longest of all clients, and the memory
        is needed.
        """
        log.info("client_dropped", reason="unfinished_frame", client=self.profile.name)
        message = "too many frames were begun and not finished, this one first"
        self._refuse(FrameError(frames.BUSY, message))
        if self._reading is not None:
            self._reading.cancel()

    async def _finish_calls(self, group: asyncio.TaskGroup) -> None:
        """Wait until calls in flight are answered: a client that has only stopped writing still
        reads.
        """
        if has_hung_up(self._writer.get_extra_info("socket")):
            return
        try:
            async with time_limit(group, self._clock, self._settings.drop_after.total_seconds()):
                await self._idle.wait()
        except TimeoutError:
            log.info("client_dropped", reason="stopped_writing")

    async def _discard(self, group: asyncio.TaskGroup) -> None:
        """Read on and discard: closing with unread bytes would lose the error frame that was sent
        to the client.
        """
        try:
            async with time_limit(group, self._clock, self._settings.drop_after.total_seconds()):
                await self._incoming.discard()
        except TimeoutError:
            log.info("client_dropped", reason="sends_after_bad_frame")
        except OSError:
            log.debug("client_left_abruptly", client=self.profile.name)

    async def _take_next(self, group: asyncio.TaskGroup) -> bool:
        """Read and handle the next line; False at the end of the stream. A line that is no frame is
        refused by itself.
        """
        try:
            if (line := await self._incoming.line()) is None:
                return False
            # A long line is parsed in a thread; the next line is read only afterwards.
            frame = await offload(len(line), lambda: frames.parse(line))
        except FrameError as error:
            if error.fatal:
                raise
            self._refuse(error)
            return True
        self._take(frame, group)
        return True

    def _take(self, frame: Frame, group: asyncio.TaskGroup) -> None:
        match frame:
            case Request():
                self._start(frame, group)
            case Notification(method, params) if method == _CANCEL:
                self._withdraw(params.get("requestId"))
            case Notification(method, params):
                self._hear(method, params)
            case Response():
                self._settle(frame)

    def _refuse(self, error: FrameError) -> None:
        self.send(frames.encode(frames.error(error.call_id, error.code, error.message)))

    def _start(self, request: Request, group: asyncio.TaskGroup) -> None:
        try:
            self.role = self.role.after(request.method, request.params)
        except InvalidRequest as error:
            self.send(frames.encode(describe(request.id, error)))
            return
        handler = self._access.of(self.role).calls.get(request.method)
        if handler is None:
            message = f"there is no method {request.method[:100]!r} on this connection"
            self.send(frames.encode(frames.error(request.id, frames.METHOD_NOT_FOUND, message)))
            return
        if len(self._in_flight) >= self._settings.max_calls_per_client:
            busy = Busy(
                f"{len(self._in_flight)} calls are in flight", cure="wait for one to be answered"
            )
            self.send(frames.encode(describe(request.id, busy)))
            return
        task = group.create_task(self._answer(request, handler))
        self._in_flight[task] = request.id
        self._idle.clear()
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        self._withdrawn.discard(task)
        if not self._in_flight:
            self._idle.set()

    def _withdraw(self, call_id: Any) -> None:
        """Cancel the call with that id; unknown and answered calls are ignored."""
        for task, known in self._in_flight.items():
            if type(known) is type(call_id) and known == call_id:
                self._withdrawn.add(task)
                task.cancel()

    async def _answer(self, request: Request, handler: Handler) -> None:
        try:
            reply = await handler(request.params, self)
            if not isinstance(reply, PeerReply):
                reply = PeerReply(reply)
            answer = self._encode_result(request.id, reply.result)
        except asyncio.CancelledError:
            self.send(frames.encode(describe(request.id, self._why_cut())))
            raise
        except AgentdError as error:
            self.send(frames.encode(describe(request.id, error)))
        except Exception:  # one call's bug must not end the client's other calls
            log.exception("call_failed", method=request.method)
            message = "the daemon could not do this; its log says why"
            self.send(frames.encode(frames.error(request.id, frames.INTERNAL_ERROR, message)))
        else:
            self.send(answer)
            for method, params in reply.then:
                self.notify(method, params)

    def _why_cut(self) -> AgentdError:
        if self.is_withdrawn():
            return Withdrawn("the call was taken back")
        if self._is_stopping:
            return ShuttingDown(cure="try again once the daemon runs")
        return Busy("the connection ended before the answer", cure="connect and ask again")

    def _encode_result(self, call_id: CallId, value: Any) -> bytes:
        answer = frames.encode(frames.result(call_id, value))
        # A row that came in a frame of the allowed size must also go out, with what surrounds it.
        if len(answer) > 2 * self._settings.max_frame_bytes:
            raise AnswerTooLarge(cure="ask for less at once")
        return answer

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification. Raises FrameError for an `initialize` that asks to be bound to a
        session and cannot be.
        """
        listener = self._access.of(self.role).notifications.get(method)
        # An `initialize` without an id has no listener and no answer, but the rights that it gives
        # up are gone all the same.
        if listener is not None or method == _HELLO:
            try:
                self.role = self.role.after(method, params)
            except InvalidRequest as error:
                raise FrameError(frames.INVALID_REQUEST, error.message, fatal=True) from None
        if listener is None:
            return
        try:
            listener(params, self)
        except AgentdError as error:
            log.info("notification_refused", method=method, reason=error.reason)
        except Exception:  # a notification has no answer to fail with
            log.exception("notification_failed", method=method)

    def _settle(self, response: Response) -> None:
        answer = self._asked.get(response.id)
        if answer is None or answer.done():
            return
        if response.error is None:
            answer.set_result(response.result)
        else:
            answer.set_exception(PeerRefused())

    def _end(self) -> None:
        """Cancel the calls in flight, once: a second cancellation would interrupt their cleanup."""
        if self._has_ended:
            return
        self._has_ended = True
        for task in self._in_flight:
            task.cancel()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(PeerGone())
        if self._in_flight:
            # The cancelled calls send their answers first; the last of them closes the queue.
            for task in tuple(self._in_flight):
                task.add_done_callback(self._close_when_idle)
        else:
            self._outgoing.close()

    def _close_when_idle(self, _: asyncio.Task[None]) -> None:
        if not self._in_flight:
            self._outgoing.close()
