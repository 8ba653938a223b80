"""Questions to the user before an effect, as `session/request_permission`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import structlog

from agentd.domain.tool import Approval, Decision
from agentd.domain.turn import SessionKey
from agentd.ports import Clock
from agentd.screening.spelled import spelled
from agentd.server.hub import Hub
from agentd.server.peer import Peer, PeerGone, PeerRefused
from agentd.server.questions import pages, size
from agentd.server.settings import ServerSettings

log = structlog.get_logger()

_NO_ROOT = PurePath("/")
_LONG = 64 * 1024  # characters; more is prepared beside the loop
NEXT_PAGE = "next_page"  # the option by which a client asks for the next one

# The other option ids on the wire, which are the protocol's kinds at the same time.
_DECISIONS = {
    "allow_always": Decision.ALWAYS,
    "allow_once": Decision.ONCE,
    "reject_once": Decision.DENY,
}


class Permissions:
    """The Approver: asks the client that sent the message, then the others; the first answer wins. Those
    bound to the session are not asked, since others speak through them.

    While no client of the owner's is attached a question waits `permission_wait` for one, then counts as denied.
    Paths in a question are shown below `root`, since clients expect absolute ones. What does not fit one
    is asked for page by page, so that nobody allows what was not shown.
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
        questions = await self._questions(session, call_id, approval)
        decision = await self._poll(session, questions)
        log.info("permission_answered", session=session, title=approval.title, answer=str(decision))
        return decision

    async def _poll(self, session: SessionKey, questions: Sequence[dict[str, Any]]) -> Decision:
        async with asyncio.TaskGroup() as group:
            poll = _Poll(questions, group, self._clock, self._wait)
            with self._hub.watching(session, poll.include):
                for peer in self._hub.watchers(session):
                    poll.include(peer)
                decision = await poll.decision
            poll.end()
        return decision

    async def _questions(
        self, session: SessionKey, call_id: str, approval: Approval
    ) -> list[dict[str, Any]]:
        """A question for each page; the last has the options that count."""
        is_long = size(approval) > _LONG
        made = partial(pages, approval, self._root)
        contents = await asyncio.to_thread(made) if is_long else made()
        title, total = spelled(approval.title), len(contents)
        return [
            {
                "sessionId": session,
                "toolCall": {
                    "toolCallId": call_id,
                    "title": title if total == 1 else f"{title} (page {number} of {total})",
                    "kind": "edit" if approval.path else "other",
                    "status": "pending",
                    "content": content,
                },
                "options": [
                    {"optionId": id_, "name": name, "kind": kind}
                    for id_, kind, name in (
                        _offers(approval) if number == total else _turning(number + 1, total)
                    )
                ],
                "_meta": {"agentd/digest": approval.digest, "agentd/scope": approval.scope},
            }
            for number, content in enumerate(contents, start=1)
        ]


def _offers(approval: Approval) -> Iterator[tuple[str, str, str]]:
    """The ids, kinds and names of the options; a lasting yes only where something would be covered, and
    never first, since clients mark the first one and Enter takes it.
    """
    yield "allow_once", "allow_once", "Allow this once"
    if approval.scope != "once":
        what = f"changes of {approval.path}" if approval.path else "questions of this kind"
        yield "allow_always", "allow_always", f"Allow, also for later {what} in this conversation"
    yield "reject_once", "reject_once", "Do not allow"


def _turning(page: int, total: int) -> Iterator[tuple[str, str, str]]:
    yield NEXT_PAGE, "allow_once", f"Show page {page} of {total}"
    yield "reject_once", "reject_once", "Do not allow"


class _Poll:
    """One question, in pages, on its way to several clients. `decision` is set once."""

    def __init__(
        self,
        questions: Sequence[dict[str, Any]],
        group: asyncio.TaskGroup,
        clock: Clock,
        wait: float,
    ) -> None:
        self.decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._questions = questions
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
            decision = await self._answered(peer)
        except (PeerGone, PeerRefused) as error:
            log.info("permission_not_answered", client=peer.profile.name, reason=error.reason)
            del self._asked[peer]
            if not self._asked and not self.decision.done():
                self._timer = self._group.create_task(self._give_up())
            return
        if not self.decision.done():
            self.decision.set_result(decision)

    async def _answered(self, peer: Peer) -> Decision:
        """What the client says to the last page, once it has asked for each; a no to any is a no."""
        for question in self._questions:
            answer = await peer.call("session/request_permission", question)
            chosen = _chosen(question, answer)
            if chosen != NEXT_PAGE:
                return _DECISIONS.get(chosen, Decision.DENY)
        return Decision.DENY

    async def _give_up(self) -> None:
        await self._clock.sleep(self._wait)
        if not self.decision.done():
            self.decision.set_result(Decision.UNASKED)


def _chosen(question: dict[str, Any], answer: Any) -> str:
    """The id of the option that was chosen; "" for anything but one that was offered."""
    offered = {option["optionId"] for option in question["options"]}
    match answer:
        case {"outcome": {"outcome": "selected", "optionId": str(chosen)}} if chosen in offered:
            return chosen
    return ""
