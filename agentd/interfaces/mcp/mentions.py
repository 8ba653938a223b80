"""`@NAME:URI` in the owner's message attaches that resource of the MCP server NAME."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import ToolFailed
from agentd.core.outside import replace_spans
from agentd.core.ports import Approver
from agentd.core.tool import Approval, Decision, FileIntent, ToolCall, ToolOutput
from agentd.core.turn import SessionKind, TurnRequest
from agentd.interfaces.mcp.catalogue import RESOURCE_TOOL
from agentd.interfaces.mcp.server import ToolServer
from agentd.interfaces.mcp.tool import McpTool

_MENTION = re.compile(r"(?:^|(?<=[\s(\"'“‘«]))@([a-z0-9][a-z0-9-]{0,23}):(\S{1,500})")
_AFTER = ".,;:!?\"'”’»"
_MOST = 5  # resources of one message

Tell = Callable[[str], None]


class ResourceMention(Struct, frozen=True):
    """A resource that a message mentions."""

    server: str
    uri: str

    @property
    def words(self) -> str:
        """The mention as it is typed."""
        return f"@{self.server}:{self.uri}"


def mentions(text: str) -> Iterator[ResourceMention]:
    """Yield the distinct mentions in a text; their servers need not exist."""
    found = (ResourceMention(name, _bare(uri)) for name, uri in _MENTION.findall(text))
    yield from dict.fromkeys(one for one in found if one.uri)


def _bare(uri: str) -> str:
    """Return the URI without the punctuation or the bracket that ends the sentence around it."""
    bare = uri.rstrip(_AFTER)
    while bare.endswith(")") and bare.count(")") > bare.count("("):
        bare = bare[:-1].rstrip(_AFTER)
    return bare


class Mentions:
    """Attaches mentioned resources to messages, under the permissions of `read_resource`."""

    def __init__(self, servers: Sequence[ToolServer], approver: Approver, most: int) -> None:
        """A resource's text is cut to `most` characters."""
        self._servers = {server.name: server for server in servers}
        self._approver = approver
        self._most = most

    async def attached(self, request: TurnRequest, tell: Tell, *, may_ask: bool) -> TurnRequest:
        """Return the request with the mentioned resources appended to its text and marked as
        quoted; for a resource that cannot be read the reason is appended. Only the owner's own
        words in his own sessions count. `tell` gets a sentence for each resource. If `may_ask` is
        false, a resource that needs the owner's yes is not read.
        """
        if request.kind is not SessionKind.OWNER:
            return request
        words = replace_spans(request.text, request.quoted, filling="\n")
        named = [one for one in mentions(words) if one.server in self._servers]
        for number, mention in enumerate(named, start=1):
            if number > _MOST:
                tell(f"{mention.words} was not attached: {_MOST} resources go along with a message")
                continue
            output = await self._read(mention, request, number, may_ask=may_ask)
            tell(_outcome_of(mention, output))
            added = f"\n\n{mention.words}\n{output.text}\n"
            start = len(request.text)
            quoted = (*request.quoted, (start, start + len(added)))
            request = replace(request, text=request.text + added, quoted=quoted)
        return request

    async def _read(
        self, mention: ResourceMention, request: TurnRequest, number: int, *, may_ask: bool
    ) -> ToolOutput:
        server = self._servers[mention.server]
        name = str(RESOURCE_TOOL["name"])
        if not server.has_resources:
            return ToolOutput(f"{server.name} offers no resources that may be read.", is_error=True)
        tool = McpTool(server, server.entries()[name], vouched=False, most=self._most)
        call = ToolCall(
            f"mention-{number}",
            tool.name,
            {"uri": mention.uri},
            request.session,
            request.kind,
            request.origin,
        )
        host = _MentionHost(self._approver, call, may_ask=may_ask)
        try:
            if tool.spec.asks and not await host.approve(_question(mention)):
                return ToolOutput("The user did not allow it to be read.", is_error=True)
            return await tool.run(call, host)
        except ToolFailed as error:
            return ToolOutput(f"It was not read: {error.message}.", is_error=True)


class _MentionHost(Struct, frozen=True):
    """The host of such a read: asks as turns do. Nothing is journalled, since a read can be
    repeated.
    """

    approver: Approver
    call: ToolCall
    may_ask: bool

    async def approve(self, approval: Approval) -> bool:
        answer = Decision.UNASKED
        if self.may_ask:
            answer = await self.approver.ask(self.call.session, self.call.id, approval)
        if answer is Decision.UNASKED:
            raise ToolFailed("nobody was there who could have been asked to allow it")
        return answer is not Decision.DENY

    def tell(self, text: str) -> None:
        return

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def intend(self, intent: FileIntent | None = None) -> None:
        return


def _question(mention: ResourceMention) -> Approval:
    words = mention.words
    digest = hashlib.sha256(words.encode(errors="replace")).hexdigest()
    return Approval(f"Attach a resource of {mention.server}", digest, new_text=words)


def _outcome_of(mention: ResourceMention, output: ToolOutput) -> str:
    if not output.is_error:
        return f"{mention.words} goes along ({len(output.text):,} characters)"
    reason = " ".join(output.text.split())[:300]
    return f"{mention.words} does not go along: {reason}"
