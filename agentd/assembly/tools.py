"""What the model may call."""

from __future__ import annotations

from agentd.assembly.alerting import Alerting
from agentd.assembly.facts import Facts
from agentd.assembly.graph import Graph
from agentd.assembly.ground import Ground
from agentd.assembly.memory import Memory
from agentd.assembly.storage import Stores
from agentd.jobs.agenda import Agenda
from agentd.ports import Tool
from agentd.tools.forget import Forget
from agentd.tools.graph_recall import GraphRecall
from agentd.tools.memory_read import MemoryRead
from agentd.tools.memory_search import MemorySearch
from agentd.tools.memory_tree import MemoryTree
from agentd.tools.memory_write import MemoryWrite
from agentd.tools.notify import Notify
from agentd.tools.remember import Remember
from agentd.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList


def build_tools(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: Graph,
    facts: Facts,
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
