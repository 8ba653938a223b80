"""What the model may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agentd.app.assembly.alerting import Alerting
from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.mcp import Servers, build_servers
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.storage import Stores
from agentd.automation.heartbeat.beat_turn import HEARTBEAT
from agentd.automation.jobs.agenda import Agenda
from agentd.core.links import FETCH, SEARCH
from agentd.core.ports import FormAsker, Tool, ToolSource
from agentd.core.turn import Origin, TurnRequest
from agentd.interfaces.tools.forget import Forget
from agentd.interfaces.tools.graph_recall import GraphRecall
from agentd.interfaces.tools.look import LookSource
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.interfaces.tools.remember import Remember
from agentd.interfaces.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList
from agentd.interfaces.web.browser import Browser, opening
from agentd.interfaces.web.web_tools import WebFetch, WebSearch, WebSource


@dataclass(frozen=True, slots=True)
class WebParts:
    """What reads pages and searches, and the tools that do."""

    browser: Browser
    tool_source: WebSource


def build_web(runtime: RuntimeContext) -> WebParts:
    """The tools that are on; nothing is loaded or asked."""
    settings, most = runtime.config.web, runtime.config.agent.max_tool_output
    folder = runtime.places.state_dir
    browser = Browser(settings, opening(settings, runtime.environ, folder, runtime.redactor))
    tools: dict[str, Tool] = {
        FETCH: WebFetch(browser, settings, most),
        SEARCH: WebSearch(browser, settings, most),
    }
    return WebParts(browser, WebSource([tools[name] for name in browser.offered], settings))


@dataclass(frozen=True, slots=True)
class Offered:
    """What the model may call: tools of our own, those of servers, and the web."""

    own: tuple[Tool, ...]
    servers: Servers
    web: WebParts
    memory: Memory

    @property
    def tool_sources(self) -> tuple[ToolSource, ...]:
        """Where the tools are that not every turn has."""
        others = (
            self.web.tool_source,
            *([self.servers.tool_source] if self.servers.tool_source else ()),
        )
        return (*others, LookSource(self.memory.checklist, partial(_names, others)))

    @property
    def kinds(self) -> Mapping[str, str]:
        """What sort of tool each is, by name."""
        return {
            **{tool.spec.name: tool.spec.kind for tool in self.own},
            **self.web.tool_source.kinds,
        }


def build_tools(
    runtime: RuntimeContext,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    facts: FactParts,
    alerts: Alerting,
    agenda: Agenda,
    *,
    forms: FormAsker | None,
) -> Offered:
    """All tools, our own in the order in which the model is told of them. Raises ConfigError where what the
    others need is not installed.
    """
    learnt = facts.learnt
    own = (
        MemorySearch(facts.recall),
        MemoryRead(facts.recall),
        MemoryRead(facts.recall, "memory_get"),
        MemoryWrite(memory.files, runtime.clock, runtime.redactor),
        MemoryTree(memory.files),
        *((Remember(learnt.service), Forget(learnt.service, facts.recall)) if learnt else ()),
        *((GraphRecall(graph.service),) if graph.service else ()),
        Notify(stores.outbox, alerts.targets, alerts.dispatcher.wake),
        ScheduleCreate(agenda, runtime.clock),
        ScheduleList(agenda),
        ScheduleCancel(agenda),
    )
    return Offered(own, build_servers(runtime, forms), build_web(runtime), memory)


def _names(tool_sources: Sequence[ToolSource]) -> tuple[str, ...]:
    """The tools that beats have of these."""
    beat = TurnRequest(HEARTBEAT, "", "", origin=Origin.HEARTBEAT)
    return tuple(spec.name for tool_source in tool_sources for spec in tool_source.specs(beat))
