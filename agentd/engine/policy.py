"""What a turn may call once its prompt carries text from outside. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentd.domain.prompt import Effect, ToolSpec
from agentd.domain.tool import ToolCall
from agentd.domain.turn import Origin
from agentd.engine.settings import ToolsSettings


class Ruling(StrEnum):
    """What becomes of a call."""

    RUN = "run"
    ASK = "ask"  # the owner decides about it as it stands
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class TaintPolicy:
    """The rule. `readers` are the tools that the owner lets such a turn call unasked; only those that
    read count.
    """

    readers: frozenset[str]

    def judge(self, call: ToolCall, spec: ToolSpec) -> tuple[ToolCall, Ruling]:
        """The call as its tool is to see it, and whether it runs. A guarded tool keeps the rule itself:
        what needs a yes it shows byte for byte. Nobody is there to be asked in silent turns.
        """
        is_reader = spec.effect is Effect.READ_ONLY and call.name in self.readers
        is_asked = spec.asks and call.origin is Origin.USER  # beats have only what the owner chose
        if not is_asked and (not call.tainted or spec.is_guarded or is_reader):
            return call, Ruling.RUN
        return call, Ruling.ASK if call.origin is Origin.USER else Ruling.REFUSE


BY_DEFAULT = TaintPolicy(frozenset(ToolsSettings().when_tainted))
