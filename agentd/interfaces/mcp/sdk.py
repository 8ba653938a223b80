"""Sessions with MCP servers over the official SDK. Imported at the first start of a server, since
the SDK is large.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result
from pydantic import BaseModel, ValidationError

from agentd import __version__
from agentd.core.form import UNASKED, FormAction, FormAnswer
from agentd.interfaces.mcp.http_bounds import HttpBounds
from agentd.interfaces.mcp.link import (
    Fill,
    ListedResource,
    ServerAnswer,
    ServerDescription,
    ServerFault,
    Show,
)
from agentd.interfaces.mcp.program import Program

_PAGES = 20
_LONGEST_NAME = 100  # characters of the name of a malformed tool
_LIST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # as newer versions want
_FORMS = 5  # at most, that one call may have the owner fill in
_RESOURCES = 1000  # at most, of one server
_JUNK = 100  # lines that are no messages and are skipped: many programs print a greeting
_LARGE = 64 * 1024  # bytes; longer lines are parsed in a thread
_CUT = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")  # of the SDK
_STOPPED = (anyio.ClosedResourceError, anyio.BrokenResourceError)

R = TypeVar("R", bound=BaseModel)
Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]

# The SDK logs tracebacks that contain what servers sent; callers get what matters as errors.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class _OpenCall:
    """A call without an answer yet, with the forms that the server has sent during the call."""

    def __init__(self, fill: Fill | None) -> None:
        self._fill = fill
        self._asked = 0
        self._scopes: set[anyio.CancelScope] = set()

    async def filled(self, message: str, schema: Mapping[str, Any]) -> FormAnswer | None:
        """Have the owner fill in a form. Returns None if the call ends before his answer, UNASKED
        without `fill` or beyond `_FORMS` forms.
        """
        self._asked += 1
        if self._fill is None or self._asked > _FORMS:
            return UNASKED
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await self._fill(message, schema)
            finally:
                self._scopes.discard(scope)
        return None

    def close(self) -> None:
        """Withdraw the forms that are still open."""
        for scope in tuple(self._scopes):
            scope.cancel()


class SdkLink:
    """The Link over a session of the SDK."""

    def __init__(
        self,
        session: ClientSession,
        dispatcher: _Dispatcher,
        cause: Callable[[], Awaitable[ServerFault]],
    ) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._cause = cause
        self._calls: list[_OpenCall] = []
        self.changed = asyncio.Event()
        self.ended = asyncio.Event()
        self.is_broken_off = False  # whether `ended` means that agentd cut the connection

    async def introduce(self) -> None:
        """Do the handshake. Raises ServerFault."""
        try:
            await self._session.initialize()
        except MCPError as error:
            raise await self._fault(error) from None
        except (ValidationError, RuntimeError) as error:
            raise _nonsense(error) from None

    async def said(self) -> ServerDescription:
        """List the server's tools and instructions; clears `changed`. Raises ServerFault."""
        self.changed.clear()
        self._dispatcher.malformed.clear()
        self._dispatcher.version = self._session.protocol_version or ""
        tools: list[Mapping[str, Any]] = []
        cursor: str | None = None
        has = self._session.server_capabilities
        for _ in range(_PAGES if has and has.tools else 0):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await self._ask(request, types.ListToolsResult)
            tools += [tool.model_dump(by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        instructions = self._session.instructions or ""
        return ServerDescription(
            instructions,
            tuple(tools),
            has_resources=bool(has and has.resources),
            malformed=tuple(self._dispatcher.malformed),
        )

    async def call(
        self, tool: str, arguments: Mapping[str, Any], show: Show, fill: Fill | None
    ) -> ServerAnswer:
        """See Link."""

        async def advanced(progress: float, total: float | None, message: str | None) -> None:
            counted = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            show(f"{counted} {message or ''}".strip())

        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        # Not the session's own call: it would check the answer by a schema of the server's, which
        # may hold patterns that take for ever.
        request = types.CallToolRequest(params=params)
        open_call = _OpenCall(fill)
        self._calls.append(open_call)
        try:
            result = await self._ask(request, types.CallToolResult, advanced)
        finally:
            self._calls.remove(open_call)
            open_call.close()
        parts = [_text_of(block) for block in result.content]
        if not parts and result.structured_content is not None:
            parts = [json.dumps(result.structured_content, ensure_ascii=False)]
        return ServerAnswer("\n\n".join(parts), is_error=bool(result.is_error))

    async def read(self, uri: str) -> ServerAnswer:
        """Read a resource. Raises ServerFault."""
        params = types.ReadResourceRequestParams(uri=uri)
        result = await self._ask(types.ReadResourceRequest(params=params), types.ReadResourceResult)
        return ServerAnswer("\n\n".join(_contents_text(one) for one in result.contents))

    async def resources(self) -> tuple[ListedResource, ...]:
        """List the resources, at most `_RESOURCES` of `_PAGES` pages. Raises ServerFault."""
        found: list[ListedResource] = []
        cursor: str | None = None
        has = self._session.server_capabilities
        for _ in range(_PAGES if has and has.resources else 0):
            request = types.ListResourcesRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await self._ask(request, types.ListResourcesResult)
            found += [ListedResource(one.uri, one.title or one.name) for one in page.resources]
            cursor = page.next_cursor
            if not cursor or len(found) > _RESOURCES:
                break
        return tuple(found[:_RESOURCES])

    async def heard(self, message: IncomingMessage) -> None:
        """Set `changed` if the message says that the server's tools have changed."""
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    async def elicited(
        self, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer a server's request for values (an elicitation) with what the owner fills in. The
        request does not name its call, so it is declined unless exactly one call is open.
        """
        if not isinstance(params, types.ElicitRequestFormParams):
            return _decline("addresses are not opened for servers")
        if len(self._calls) != 1:
            return _decline("the user is asked during one call alone")
        answer = await self._calls[0].filled(params.message, params.requested_schema)
        if answer is None or answer.action is FormAction.CANCEL:
            return types.ElicitResult(action="cancel")
        if answer.action is FormAction.UNASKED:
            return _decline("nobody is there who could be asked")
        if answer.action is FormAction.DECLINE:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=dict(answer.content))

    async def _ask(
        self, request: types.Request[Any, Any], result: type[R], advanced: ProgressFnT | None = None
    ) -> R:
        try:
            return await self._session.send_request(request, result, progress_callback=advanced)
        except MCPError as error:
            raise await self._fault(error) from None
        except (ValidationError, RuntimeError, ValueError, TypeError) as error:
            raise _nonsense(error) from None

    async def _fault(self, error: MCPError) -> ServerFault:
        # Servers use this code for other errors too, and a cut stream may end with other codes.
        is_closed = error.error.code == types.CONNECTION_CLOSED or self.is_broken_off
        # Over HTTP a single request may be cut as well.
        is_cut = self.is_broken_off and error.error == _CUT
        if is_cut or (is_closed and self.ended.is_set()):
            return await self._cause()
        return ServerFault("refused", f"it answered: {error.error.message[:500]}")


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Leaves tools that the protocol does not allow out of a server's lists: the SDK refuses a
    whole list for one of them.
    """

    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.version = ""  # of the protocol
        self.malformed: list[str] = []  # a name with the reason for each tool that was left out

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Send the request and return the result, a list of tools without the malformed ones."""
        result = await super().send_raw_request(method, params, opts, **more)
        tools = result.get("tools")
        if method != "tools/list" or not isinstance(tools, list):
            return result
        faults = [_fault_of(tool, self.version) for tool in tools]
        self.malformed += [
            f"{_name_of(tool)} ({fault})"
            for tool, fault in zip(tools, faults, strict=True)
            if fault
        ]
        sound = [tool for tool, fault in zip(tools, faults, strict=True) if not fault]
        return {**result, "tools": sound}


def _fault_of(tool: Any, version: str) -> str:
    """Return why this version of the protocol does not allow a tool in a list, "" if it does."""
    try:
        with suppress(KeyError):  # of this version the SDK has no rules
            validate_server_result("tools/list", version, {**_LIST, "tools": [tool]})
        types.Tool.model_validate(tool, by_name=False)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("tools", 0))
        return f"{place}: {first['msg']}" if place else first["msg"]
    return ""


def _name_of(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    return name[:_LONGEST_NAME] if isinstance(name, str) else "one without a name"


@asynccontextmanager
async def to_program(program: Program) -> AsyncIterator[SdkLink]:
    """Open a session over the pipes of a program, for as long as the block runs. Raises
    ServerFault.
    """
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_receive(program, incoming)),
            group.create_task(_send(program, outgoing)),
        ]
        try:
            async with _session(read, write, program.cause) as link:
                link.ended = program.ended
                yield link
        finally:
            for task in tasks:
                task.cancel()
            for stream in (incoming, read, write, outgoing):
                stream.close()


@asynccontextmanager
async def to_address(
    url: str,
    headers: Mapping[str, str],
    timeout: timedelta,
    authorized: Callable[[HttpBounds], httpx2.Auth] | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[SdkLink]:
    """Open a session over streamable HTTP, for as long as the block runs. `authorized` makes the
    httpx auth that adds a login to requests; `transport` replaces the default transport. Raises
    ServerFault.
    """
    bounds = HttpBounds()

    async def gone() -> ServerFault:
        return bounds.fault or ServerFault("died", "the connection was closed")

    client = httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=timeout.total_seconds(),
        auth=authorized(bounds) if authorized else None,
        transport=transport,
        follow_redirects=False,
        event_hooks={"request": [bounds.asked], "response": [bounds.answered]},
    )
    try:
        async with (
            client,
            streamable_http_client(url, http_client=client) as (read, write),
            _session(read, write, gone) as link,
        ):
            link.ended, link.is_broken_off = bounds.flooded, True
            yield link
    except* (httpx2.HTTPError, OSError) as errors:
        if bounds.fault is not None:
            raise bounds.fault from None
        error = errors.exceptions[0]
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise ServerFault("unreachable", f"no answer ({type(error).__name__})") from None


@asynccontextmanager
async def _session(
    read: Any, write: Any, cause: Callable[[], Awaitable[ServerFault]]
) -> AsyncIterator[SdkLink]:
    links: list[SdkLink] = []

    async def heard(message: IncomingMessage) -> None:
        for link in links:
            await link.heard(message)

    async def elicited(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context  # it does not name the call
        return await links[0].elicited(params) if links else _decline("nobody is there yet")

    # Without callbacks the SDK answers requests for sampling and roots with an error.
    dispatcher = _Dispatcher(read, write)
    session = ClientSession(
        dispatcher=dispatcher,
        message_handler=heard,
        elicitation_callback=elicited,
        client_info=types.Implementation(name="agentd", version=__version__),
    )
    async with session:
        links.append(SdkLink(session, dispatcher, cause))
        yield links[0]


async def _receive(program: Program, incoming: Incoming) -> None:
    junk = 0
    try:
        async for line in program.lines():
            message = await _message(line)
            if message is not None:
                await incoming.send(SessionMessage(message))
            elif (junk := junk + bool(line.strip())) > _JUNK:
                program.fault = ServerFault("protocol", "it writes what is no protocol message")
                break
    except _STOPPED:
        pass  # the session was closed before the program
    finally:
        program.ended.set()
        incoming.close()


async def _send(program: Program, outgoing: Outgoing) -> None:
    with outgoing:
        try:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await program.send(text.encode(errors="replace") + b"\n")
        except (ConnectionError, RuntimeError):
            program.ended.set()


async def _message(line: bytes) -> types.JSONRPCMessage | None:
    try:
        if len(line) > _LARGE:
            return await asyncio.to_thread(_parse, line)
        return _parse(line)
    except ValueError:
        return None


def _parse(line: bytes) -> types.JSONRPCMessage:
    return types.jsonrpc_message_adapter.validate_json(line, by_name=False)


def _text_of(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.EmbeddedResource(resource=resource):
            return _contents_text(resource)
        case types.ResourceLink(uri=uri, name=name):
            return f"[a resource: {name}, {uri}]"
    return f"[{block.type}, {getattr(block, 'mime_type', 'of an unknown kind')}: not shown]"


def _contents_text(contents: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(contents, types.TextResourceContents):
        return contents.text
    return f"[{contents.mime_type or 'bytes'} of {contents.uri}: not shown]"


def _decline(why: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=f"Declined: {why}.")


def _nonsense(error: Exception) -> ServerFault:
    where = error.title if isinstance(error, ValidationError) else type(error).__name__
    return ServerFault("protocol", f"its answer is none of the protocol's ({where})")
