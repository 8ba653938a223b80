"""Questions to the user before an effect, as `session/request_permission`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import PurePath
from typing import Any, TypeVar

import structlog

from agentd.core.form import UNASKED, FormAction, FormAnswer, InputForm
from agentd.core.ports import Clock
from agentd.core.screening.lookalikes import spell_out
from agentd.core.tool import Approval, Decision
from agentd.core.turn import Kind, SessionKey, kind_of
from agentd.interfaces.acp.hub import Hub
from agentd.interfaces.acp.peer import Peer, PeerGone, PeerRefused
from agentd.interfaces.acp.socket_settings import ServerSettings

log = structlog.get_logger()
A = TypeVar("A")

Content = dict[str, Any]

_LARGEST_DIFF = 150_000  # characters of both sides that surely fit a frame
_PAGE = 40_000  # characters
_AROUND = 3  # unchanged lines before and after a change
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
        decision = await self._put(session, call_id, approval)
        # Not the title: it may hold the words of a fact, or of whoever chose a tool's input.
        log.info("permission_answered", session=session, call=call_id, answer=str(decision))
        return decision

    async def ask_owner(self, call_id: str, approval: Approval) -> Decision:
        """His answer in whichever conversation of his it comes first; UNASKED at once where no client that
        answers is in one, and later once none of those who were asked has answered. Cancelling takes the
        question back.
        """
        sessions = list(self._conversations())
        if not sessions:
            return Decision.UNASKED
        asked = (self._put(session, call_id, approval) for session in sessions)
        decision = await _first_answer(asked, Decision.UNASKED)
        log.info("permission_answered", call=call_id, answer=str(decision))
        return decision

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        """What the owner says over a client of the session that shows forms, the first answer of all;
        UNASKED at once where there is none. Cancelling takes the form back.
        """
        author = self._hub.author(session)
        peers = [p for p in self._hub.watchers(session) if _answers(p) and p.profile.shows_forms]
        if not peers or (author is not None and author.profile.denies):
            return UNASKED
        question = {
            "sessionId": session,
            "mode": "form",
            "message": f"The server {form.asker} asks:\n{spell_out(form.message)}",
            "requestedSchema": dict(form.schema),
            "_meta": {"agentd/server": form.asker},
        }
        answer = await _first_answer((_filled(peer, question) for peer in peers), UNASKED)
        log.info("form_answered", session=session, server=form.asker, answer=str(answer.action))
        return answer

    def _conversations(self) -> Iterator[SessionKey]:
        """Sessions of the owner's, enough of them that each client which answers is in one."""
        reached: set[Peer] = set()
        for session in self._hub.attended():
            peers = {peer for peer in self._hub.watchers(session) if _answers(peer)}
            if kind_of(session) is Kind.MAIN and not peers <= reached:
                reached |= peers
                yield session

    async def _put(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """Put the question to all clients of the session."""
        return await self._poll(session, await self._questions(session, call_id, approval))

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
        title, total = spell_out(approval.title), len(contents)
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


def pages(approval: Approval, root: PurePath) -> list[list[Content]]:
    """The contents of the questions to put, with all of the change, in pages where it is long, one
    after the other; the yes to the last is the one that counts. Together they hold every
    character that would be written, and what characters hide or pass for others, spelled out.
    """
    warnings = [_text(spell_out(words)) for words in approval.warnings]
    if approval.new_text is None:
        return [warnings]
    if not approval.path:
        shown = _paged(spell_out(approval.new_text))
    elif size(approval) > _LARGEST_DIFF:
        shown = _paged("\n".join(map(spell_out, _changed_lines(approval))))
    else:
        return [[*warnings, _diff(approval, root), *_disguises(approval)]]
    first, *others = [[_text(page)] for page in shown]
    return [[*warnings, *first], *others]


def size(approval: Approval) -> int:
    """How many characters there are to look at."""
    return len(approval.old_text or "") + len(approval.new_text or "")


def _diff(approval: Approval, root: PurePath) -> Content:
    diff = {"type": "diff", "path": str(root / approval.path), "newText": approval.new_text}
    if approval.old_text is not None:
        diff["oldText"] = approval.old_text
    return diff


def _disguises(approval: Approval) -> Iterator[Content]:
    """The changed lines in which something is not what it looks like."""
    lines = [(line, spell_out(line)) for line in _changed_lines(approval)]
    odd = [shown for line, shown in lines if line != shown]
    if odd:
        head = "These lines hold characters that are hidden or pass for others, here spelled out:"
        yield from (_text(page) for page in _paged("\n".join([head, *odd])))


def _changed_lines(approval: Approval) -> list[str]:
    """A unified diff of one part: all from the first line that changes to the last. Only real line ends
    count, so that nothing hides behind another kind.
    """
    old = approval.old_text.split("\n") if approval.old_text else []
    new = (approval.new_text or "").split("\n")
    head = _same(old, new)
    room = min(len(old), len(new)) - head
    tail = min(room, _same(old[::-1], new[::-1]))
    before = old[max(0, head - _AROUND) : head]
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    after = new[len(new) - tail :][:_AROUND]
    start, kept = head - len(before) + 1, len(before) + len(after)
    return [
        f"@@ -{start},{len(gone) + kept} +{start},{len(come) + kept} @@ {approval.path}",
        *(f" {line}" for line in before),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in after),
    ]


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _paged(text: str) -> list[str]:
    """The text in pieces, cut behind a line where one ends in their second half."""
    found = []
    while len(text) > _PAGE:
        cut = text.rfind("\n", _PAGE // 2, _PAGE) + 1 or _PAGE
        found.append(text[:cut])
        text = text[cut:]
    return [*found, text]


def _text(words: str) -> Content:
    return {"type": "content", "content": {"type": "text", "text": words}}


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


def _answers(peer: Peer) -> bool:
    """Whether the owner may be asked over it."""
    return peer.role.is_owner and not peer.profile.denies


async def _first_answer(asked: Iterable[Coroutine[Any, Any, A]], unasked: A) -> A:
    """The first answer of all, and the others are cancelled; `unasked` once each has given that: one who
    leaves must not end the question of those who think yet.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in asked]
        waiting, answer = set(tasks), unasked
        while waiting and answer == unasked:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            answers = (task.result() for task in done)
            answer = next((one for one in answers if one != unasked), unasked)
        for task in tasks:
            task.cancel()
    return answer


async def _filled(peer: Peer, question: dict[str, Any]) -> FormAnswer:
    """What one client says; UNASKED for one that leaves, and for what is no answer."""
    try:
        answer = await peer.call("elicitation/create", question)
    except (PeerGone, PeerRefused) as error:
        log.info("form_not_answered", client=peer.profile.name, reason=error.reason)
        return UNASKED
    match answer:
        case {"action": "accept", "content": dict(content)}:
            return FormAnswer(FormAction.ACCEPT, content)
        case {"action": "accept"}:
            return FormAnswer(FormAction.ACCEPT)
        case {"action": "decline" | "cancel" as action}:
            return FormAnswer(FormAction(action))
    return FormAnswer(FormAction.CANCEL)


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
        if not _answers(peer) or peer in self._asked or self.decision.done():
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
