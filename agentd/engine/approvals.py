"""Whether a tool call runs, is put to the owner first, or is refused, and what he has allowed for good."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog

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
    "This address was not opened: this turn has read text from outside and runs without the user, and the "
    "address stands, as a whole, neither in his own words nor in what was read on the web."
)
_CHOSEN = "text from outside may have chosen this call"


class Ruling(StrEnum):
    """What the policy rules about a tool call."""

    RUN = "run"
    ASK = "ask"  # the owner decides about it as it stands
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class TaintPolicy:
    """What a turn may call once its prompt carries text from outside. `readers` are the tools that the owner
    lets such a turn call unasked; only those that read count.
    """

    readers: frozenset[str]

    def judge(self, call: ToolCall, spec: ToolSpec) -> tuple[ToolCall, Ruling]:
        """The call as its tool is to see it, and whether it runs. A guarded tool keeps the rule itself:
        what needs a yes it shows byte for byte. Nobody is there to be asked in silent turns. An address
        is opened unasked only where it stands in what such a turn may take it from.
        """
        is_reader = spec.effect is Effect.READ_ONLY and call.name in self.readers
        if call.name == FETCH:
            is_reader = is_reader and is_known(str(call.input.get("url", "")), call.known)
        is_asked = spec.asks and not call.origin.is_silent  # beats have only what the owner chose
        if not is_asked and (not call.tainted or spec.is_guarded or is_reader):
            return call, Ruling.RUN
        return call, Ruling.REFUSE if call.origin.is_silent else Ruling.ASK


BY_DEFAULT = TaintPolicy(frozenset(ToolsSettings().when_tainted))


class Grants:
    """Lasting yeses: what the user has allowed for the rest of a conversation, as the scopes of questions
    that are not asked again. They are kept in memory alone: after a restart everything is asked anew.
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

    def judge(self, call: ToolCall, spec: ToolSpec) -> tuple[ToolCall, Ruling]:
        """The ruling of the `TaintPolicy` on the call; see `TaintPolicy.judge`."""
        return self._policy.judge(call, spec)

    def refusal(self, call: ToolCall) -> str:
        """The text that tells the model why its call was refused."""
        is_reader = call.name == FETCH and FETCH in self._policy.readers
        return _UNKNOWN if is_reader else _TAINTED.format(name=call.name)

    async def ask(self, call: ToolCall, approval: Approval, interrupt: Interrupt) -> bool:
        """The user's answer; what a lasting yes covers is not asked again, silent turns get a no. Where
        text from outside may have chosen the call, he is told so, and a yes is for this very one. Raises ToolFailed when
        nobody could be asked.
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
                cure="ask for it in `agentd chat`, where it can be allowed",
            )
        return answer is not Decision.DENY


def whole(call: ToolCall) -> Approval:
    """The question to the owner that shows a call with its whole input."""
    words = json.dumps(dict(call.input), ensure_ascii=False, indent=2, sort_keys=True)
    digest = hashlib.sha256(f"{call.name}\0{words}".encode(errors="replace")).hexdigest()
    return Approval(f"Call {call.name}", digest, new_text=words)
