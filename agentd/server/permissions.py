"""Questions to the user before an effect, as `session/request_permission`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import structlog

from agentd.domain.tool import Approval, Decision
from agentd.domain.turn import SessionKey
from agentd.ports import Clock
from agentd.server.hub import Hub
from agentd.server.peer import Peer, PeerGone, PeerRefused
from agentd.server.settings import ServerSettings

log = structlog.get_logger()

_NO_ROOT = PurePath("/")
_LARGEST_DIFF = 150_000  # characters that surely fit a frame


# The option ids on the wire, which are the protocol's kinds at the same time.
_DECISIONS = {
    "allow_always": Decision.ALWAYS,
    "allow_once": Decision.ONCE,
    "reject_once": Decision.DENY,
}


class Permissions:
    """The Approver: asks the client that sent the message, then the others; the first answer wins. Those
    bound to the session are not asked, since others speak through them.

    While no client of the owner's is attached a question waits `permission_wait` for one, then counts as denied.
    Paths in a question are shown below `root`, since clients expect absolute ones.
    """

    def __init__(
        self, hub: Hub, settings: ServerSettings, clock: Clock, root: PurePath = _NO_ROOT
    ) -> None:
        self._hub = hub
        self._wait = settings.permission_wait.total_seconds()
        self._clock = clock
        self._root = root

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """The user's answer. Cancelling takes the question back."""
        author = self._hub.author(session)
        if author is not None and author.profile.denies:
            return Decision.UNASKED
        decision = await self._poll(session, self._question(session, call_id, approval))
        log.info("permission_answered", session=session, title=approval.title, answer=str(decision))
        return decision

    async def _poll(self, session: SessionKey, question: dict[str, Any]) -> Decision:
        async with asyncio.TaskGroup() as group:
            poll = _Poll(question, group, self._clock, self._wait)
            with self._hub.watching(session, poll.include):
                for peer in self._hub.watchers(session):
                    poll.include(peer)
                decision = await poll.decision
            poll.end()
        return decision

    def _question(self, session: SessionKey, call_id: str, approval: Approval) -> dict[str, Any]:
        return {
            "sessionId": session,
            "toolCall": {
                "toolCallId": call_id,
                "title": approval.title,
                "kind": "edit" if approval.path else "other",
                "status": "pending",
                "content": [*map(_text, approval.warnings), *self._content(approval)],
            },
            "options": [
                {"optionId": kind, "name": name, "kind": kind} for kind, name in _offers(approval)
            ],
            "_meta": {"agentd/digest": approval.digest, "agentd/scope": approval.scope},
        }

    def _content(self, approval: Approval) -> list[dict[str, Any]]:
        if not approval.path or approval.new_text is None:
            return []
        if len(approval.old_text or "") + len(approval.new_text) > _LARGEST_DIFF:
            words = (
                f"{approval.path}: {len(approval.new_text)} characters, too many to show here "
                f"(SHA-256 {approval.digest})"
            )
            return [_text(words)]
        diff = {
            "type": "diff",
            "path": str(self._root / approval.path),
            "newText": approval.new_text,
        }
        if approval.old_text is not None:
            diff["oldText"] = approval.old_text
        return [diff]


def _offers(approval: Approval) -> Iterator[tuple[str, str]]:
    """The kinds and names of the options; a lasting yes only where something would be covered, and
    never first, since clients mark the first one and Enter takes it.
    """
    yield "allow_once", "Allow this once"
    if approval.scope != "once":
        what = f"changes of {approval.path}" if approval.path else "questions of this kind"
        yield "allow_always", f"Allow, also for later {what} in this conversation"
    yield "reject_once", "Do not allow"


def _text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


class _Poll:
    """One question on its way to several clients. `decision` is set once."""

    def __init__(
        self, question: dict[str, Any], group: asyncio.TaskGroup, clock: Clock, wait: float
    ) -> None:
        self.decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._question = question
        self._group = group
        self._clock = clock
        self._wait = wait
        self._asked: dict[Peer, asyncio.Task[None]] = {}
        self._timer: asyncio.Task[None] | None = group.create_task(self._give_up())

    def include(self, peer: Peer) -> None:
        """Ask this client too."""
        if (
            not peer.role.is_owner
            or peer.profile.denies
            or peer in self._asked
            or self.decision.done()
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._asked[peer] = self._group.create_task(self._ask(peer))

    def end(self) -> None:
        """Take the question back from those who have not answered."""
        for task in self._asked.values():
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()

    async def _ask(self, peer: Peer) -> None:
        try:
            answer = await peer.call("session/request_permission", self._question)
        except (PeerGone, PeerRefused) as error:
            log.info("permission_not_answered", client=peer.profile.name, reason=error.reason)
            del self._asked[peer]
            if not self._asked and not self.decision.done():
                self._timer = self._group.create_task(self._give_up())
            return
        if not self.decision.done():
            self.decision.set_result(self._read(answer))

    async def _give_up(self) -> None:
        await self._clock.sleep(self._wait)
        if not self.decision.done():
            self.decision.set_result(Decision.UNASKED)

    def _read(self, answer: Any) -> Decision:
        """The option that was chosen; anything but one that was offered is a no."""
        offered = {option["optionId"] for option in self._question["options"]}
        match answer:
            case {"outcome": {"outcome": "selected", "optionId": str(chosen)}}:
                return _DECISIONS[chosen] if chosen in offered else Decision.DENY
        return Decision.DENY
