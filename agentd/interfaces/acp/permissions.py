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
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.interfaces.acp.hub import Hub
from agentd.interfaces.acp.peer import Peer, PeerGone, PeerRefused
from agentd.interfaces.acp.socket_settings import ServerSettings

log = structlog.get_logger()
A = TypeVar("A")

Content = dict[str, Any]

_LARGEST_DIFF = 150_000  # characters, old and new text together, that certainly fit into a frame
_PAGE = 40_000  # characters
_AROUND = 3  # unchanged lines before and after a change
_NO_ROOT = PurePath("/")
_LONG = 64 * 1024  # characters; longer questions are prepared in a thread
NEXT_PAGE = "next_page"  # the option by which a client asks for the next one

# The other option ids on the wire, which are the protocol's kinds at the same time.
_DECISIONS = {
    "allow_always": Decision.ALWAYS,
    "allow_once": Decision.ONCE,
    "reject_once": Decision.DENY,
}


class Permissions:
    """The Approver over ACP: asks the client that sent the message and the session's other clients;
    the first answer wins. Clients that are bound to the session are not asked, since other people
    speak through them.

    While no client of the owner is attached, a question waits `permission_wait` for one, then
    counts as denied. Paths are shown below `root`, since clients expect absolute ones. A long
    question is asked in pages, so that nothing is allowed that was not shown.
    """

    def __init__(
        self, hub: Hub, settings: ServerSettings, clock: Clock, root: PurePath = _NO_ROOT
    ) -> None:
        self._hub = hub
        self._wait = settings.permission_wait.total_seconds()
        self._clock = clock
        self._root = root

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """Ask in the session and return the user's answer. Cancelling withdraws the question."""
        author = self._hub.author(session)
        if author is not None and author.profile.denies:
            return Decision.UNASKED
        decision = await self._put(session, call_id, approval)
        # The title is not logged: it may contain a fact, or text from outside in a tool's input.
        log.info("permission_answered", session=session, call=call_id, answer=str(decision))
        return decision

    async def ask_owner(self, call_id: str, approval: Approval) -> Decision:
        """Ask in all open sessions of the owner and return the first answer. UNASKED at once if no
        client that answers is attached to one, and later if nobody has answered. Cancelling
        withdraws the question.
        """
        sessions = list(self._conversations())
        if not sessions:
            return Decision.UNASKED
        asked = (self._put(session, call_id, approval) for session in sessions)
        decision = await _first_answer(asked, Decision.UNASKED)
        log.info("permission_answered", call=call_id, answer=str(decision))
        return decision

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        """Show a form in the session's clients that support forms, and return the first answer.
        UNASKED at once if there is no such client. Cancelling withdraws the form.
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
        """Yield sessions of the owner until every client that answers is in one of them."""
        reached: set[Peer] = set()
        for session in self._hub.attended():
            peers = {peer for peer in self._hub.watchers(session) if _answers(peer)}
            if kind_of(session) is SessionKind.OWNER and not peers <= reached:
                reached |= peers
                yield session

    async def _put(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """Ask all clients of the session."""
        return await self._poll(session, await self._questions(session, call_id, approval))

    async def _poll(self, session: SessionKey, questions: Sequence[dict[str, Any]]) -> Decision:
        async with asyncio.TaskGroup() as group:
            poll = _OpenQuestion(questions, group, self._clock, self._wait)
            with self._hub.watching(session, poll.include):
                for peer in self._hub.watchers(session):
                    poll.include(peer)
                decision = await poll.decision
            poll.end()
        return decision

    async def _questions(
        self, session: SessionKey, call_id: str, approval: Approval
    ) -> list[dict[str, Any]]:
        """Return a question for each page; only the last one has the real options."""
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
    """Return the contents of the questions: the whole change, split into pages if it is long. The
    yes to the last page counts. Together the pages contain every character that would be written;
    hidden and look-alike characters are spelled out.
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
    """Return the number of characters that the user has to read."""
    return len(approval.old_text or "") + len(approval.new_text or "")


def _diff(approval: Approval, root: PurePath) -> Content:
    diff = {"type": "diff", "path": str(root / approval.path), "newText": approval.new_text}
    if approval.old_text is not None:
        diff["oldText"] = approval.old_text
    return diff


def _disguises(approval: Approval) -> Iterator[Content]:
    """Yield the changed lines with hidden or look-alike characters, spelled out."""
    lines = [(line, spell_out(line)) for line in _changed_lines(approval)]
    odd = [shown for line, shown in lines if line != shown]
    if odd:
        head = "These lines hold characters that are hidden or pass for others, here spelled out:"
        yield from (_text(page) for page in _paged("\n".join([head, *odd])))


def _changed_lines(approval: Approval) -> list[str]:
    """Return a unified diff with one hunk, from the first changed line to the last. Only newlines
    end a line, so that nothing hides behind another kind of line end.
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
    """Return how many lines are equal from the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _paged(text: str) -> list[str]:
    """Split the text into pages of at most `_PAGE` characters, after a line where one ends in the
    second half of the page.
    """
    found = []
    while len(text) > _PAGE:
        cut = text.rfind("\n", _PAGE // 2, _PAGE) + 1 or _PAGE
        found.append(text[:cut])
        text = text[cut:]
    return [*found, text]


def _text(words: str) -> Content:
    return {"type": "content", "content": {"type": "text", "text": words}}


def _offers(approval: Approval) -> Iterator[tuple[str, str, str]]:
    """Yield the options' ids, kinds and names. A lasting yes is offered only if it would cover
    something, and never first: clients preselect the first option for Enter.
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
    """Return whether the owner may be asked over this client."""
    return peer.role.is_owner and not peer.profile.denies


async def _first_answer(asked: Iterable[Coroutine[Any, Any, A]], unasked: A) -> A:
    """Return the first answer that is not `unasked`, and cancel the rest; `unasked` if all give
    that. A client that leaves thus does not end the question for the others.
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
    """Return one client's answer to a form: UNASKED if it leaves or refuses, CANCEL for an answer
    of another shape.
    """
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


class _OpenQuestion:
    """A question that is being put to several clients, page by page. `decision` is set once."""

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
        """Ask this client as well."""
        if not _answers(peer) or peer in self._asked or self.decision.done():
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._asked[peer] = self._group.create_task(self._ask(peer))

    def end(self) -> None:
        """Withdraw the question from the clients that have not answered."""
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
        """Ask the client page by page; returns its decision on the last page, DENY if it refuses
        any page.
        """
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
    """Return the id of the chosen option; "" if the answer names none of those offered."""
    offered = {option["optionId"] for option in question["options"]}
    match answer:
        case {"outcome": {"outcome": "selected", "optionId": str(chosen)}} if chosen in offered:
            return chosen
    return ""
