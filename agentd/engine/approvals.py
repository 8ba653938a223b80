"""Decides whether a tool call runs, needs the owner's approval, or is refused.

`Grants` keeps his lasting approvals.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from enum import StrEnum

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import ToolFailed
from agentd.core.links import FETCH, is_known
from agentd.core.ports import Approver
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import Approval, Decision, ToolCall
from agentd.core.turn import SessionKey
from agentd.engine.queue import Interrupt
from agentd.engine.settings import ToolsSettings

log = structlog.get_logger()

_TAINTED = (
    "{name} was not called: this turn has read text from outside and runs without the user. "
    "Tell him what is to be done."
)
_UNKNOWN = (
    "This address was not opened: this turn has read text from outside and runs without the user, "
    "and the address stands, as a whole, neither in his own words nor in what was read on the web."
)
_CHOSEN = "text from outside may have chosen this call"


class Ruling(StrEnum):
    """The policy's decision on a tool call."""

    RUN = "run"
    ASK = "ask"  # the owner is shown the whole call and decides
    REFUSE = "refuse"


class TaintPolicy(Struct, frozen=True):
    """Rules on the calls of a turn whose prompt carries text from outside. `readers` names the
    tools that the owner lets such a turn call unasked; a name counts only if its tool is read-only.
    """

    readers: frozenset[str]

    def judge(self, call: ToolCall, spec: ToolSpec) -> Ruling:
        """Return the ruling on the call.

        A tool with `asks` needs approval for every call. In a tainted turn so does any other tool,
        except a guarded one, which handles taint itself, and a read-only one in `readers`;
        `web_fetch` is excepted only if the address occurs in `call.known`. In a silent turn, where
        nobody can be asked, `asks` is ignored and a call that would need approval because of taint
        is refused.
        """
        is_reader = spec.effect is Effect.READ_ONLY and call.name in self.readers
        if call.name == FETCH:
            is_reader = is_reader and is_known(str(call.input.get("url", "")), call.known)
        is_asked = spec.asks and not call.origin.is_silent  # a beat has only tools the owner chose
        if not is_asked and (not call.tainted or spec.is_guarded or is_reader):
            return Ruling.RUN
        return Ruling.REFUSE if call.origin.is_silent else Ruling.ASK


BY_DEFAULT = TaintPolicy(frozenset(ToolsSettings().when_tainted))


class Grants:
    """Lasting approvals by session: the scopes of questions that are not asked again for the rest
    of a conversation. They are kept in memory only: after a restart everything is asked again.
    """

    def __init__(self) -> None:
        self._scopes: defaultdict[SessionKey, set[str]] = defaultdict(set)

    def covers(self, session: SessionKey, scope: str) -> bool:
        """Whether the user has allowed the scope for the rest of the session's conversation."""
        return scope in self._scopes.get(session, ())

    def give(self, session: SessionKey, scope: str) -> None:
        """Allow the scope for the rest of the session's conversation."""
        self._scopes[session].add(scope)

    def end(self, session: SessionKey) -> None:
        """Forget what was allowed: the session's conversation has ended."""
        self._scopes.pop(session, None)


class Approvals:
    """Judges calls by a policy, and asks the owner where that is due."""

    def __init__(self, policy: TaintPolicy, grants: Grants, approver: Approver) -> None:
        self._policy = policy
        self._grants = grants
        self._approver = approver

    def judge(self, call: ToolCall, spec: ToolSpec) -> Ruling:
        """Return the ruling of the `TaintPolicy` on the call; see `TaintPolicy.judge`."""
        return self._policy.judge(call, spec)

    def refusal(self, call: ToolCall) -> str:
        """Return the text that tells the model why its call was refused."""
        is_reader = call.name == FETCH and FETCH in self._policy.readers
        return _UNKNOWN if is_reader else _TAINTED.format(name=call.name)

    async def ask(self, call: ToolCall, approval: Approval, interrupt: Interrupt) -> bool:
        """Return whether the user allows the call. Silent turns get False without a question, and a
        scope with a lasting approval gets True. In a tainted turn, where text from outside may have
        chosen the call, the question says so, lasting approvals do not count, and the answer is for
        this call only. Raises ToolFailed when nobody could be asked, Interrupted when the user
        stops the turn instead.
        """
        if call.origin.is_silent:
            return False
        if call.tainted:
            warnings = (*approval.warnings, _CHOSEN)
            approval = replace(approval, scope="once", warnings=warnings)
        if approval.scope != "once" and self._grants.covers(call.session, approval.scope):
            return True
        async with interrupt.guard():
            answer = await self._approver.ask(call.session, call.id, approval)
        if answer is Decision.ALWAYS and approval.scope != "once":
            self._grants.give(call.session, approval.scope)
        log.info("approval", session=call.session, tool=call.name, answer=str(answer))
        if answer is Decision.UNASKED:
            raise ToolFailed(
                "nobody was there who could have been asked to allow this",
                cure="ask for it in `agentd chat` on a terminal, where a person can say yes",
            )
        return answer is not Decision.DENY


def whole(call: ToolCall) -> Approval:
    """Return the question to the owner that shows a call with its whole input."""
    words = json.dumps(dict(call.input), ensure_ascii=False, indent=2, sort_keys=True)
    digest = hashlib.sha256(f"{call.name}\0{words}".encode(errors="replace")).hexdigest()
    return Approval(f"Call {call.name}", digest, new_text=words)
