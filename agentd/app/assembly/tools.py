"""What the model may call."""

from __future__ import annotations

from agentd.app.assembly.alerting import Alerting
from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.ground import Ground
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.storage import Stores
from agentd.automation.jobs.agenda import Agenda
from agentd.core.ports import Tool
from agentd.interfaces.tools.forget import Forget
from agentd.interfaces.tools.graph_recall import GraphRecall
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.interfaces.tools.remember import Remember
from agentd.interfaces.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList


def build_tools(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    facts: FactParts,
    alerts: Alerting,
    agenda: Agenda,
) -> tuple[Tool, ...]:
    """All tools, in the order in which the model is told of them."""
    learnt = facts.learnt
    return (
        MemorySearch(facts.recall),
        MemoryRead(facts.recall),
        MemoryRead(facts.recall, "memory_get"),
        MemoryWrite(memory.files, ground.clock, ground.redactor),
        MemoryTree(memory.files),
        *((Remember(learnt.service), Forget(learnt.service, facts.recall)) if learnt else ()),
        *((GraphRecall(graph.desk),) if graph.desk else ()),
        Notify(stores.outbox, alerts.targets, alerts.dispatcher.wake),
        ScheduleCreate(agenda, ground.clock),
        ScheduleList(agenda),
        ScheduleCancel(agenda),
    )
