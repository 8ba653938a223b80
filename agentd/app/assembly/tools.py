"""What the model may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agentd.app.assembly.alerting import Alerting
from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.ground import Ground
from agentd.app.assembly.mcp import Servers, build_servers
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.storage import Stores
from agentd.automation.heartbeat.watched import HEARTBEAT
from agentd.automation.jobs.agenda import Agenda
from agentd.core.links import FETCH, SEARCH
from agentd.core.ports import FormAsker, Tool, ToolShelf
from agentd.core.turn import Origin, TurnRequest
from agentd.interfaces.tools.forget import Forget
from agentd.interfaces.tools.graph_recall import GraphRecall
from agentd.interfaces.tools.look import LookShelf
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.interfaces.tools.remember import Remember
from agentd.interfaces.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList
from agentd.interfaces.web.browser import Browser, opening
from agentd.interfaces.web.web_tools import WebFetch, WebSearch, WebShelf


@dataclass(frozen=True, slots=True)
class WebParts:
    """What reads pages and searches, and the tools that do."""

    browser: Browser
    shelf: WebShelf


def build_web(ground: Ground) -> WebParts:
    """The tools that are on; nothing is loaded or asked."""
    settings, most = ground.config.web, ground.config.agent.max_tool_output
    folder = ground.places.state_dir
    browser = Browser(settings, opening(settings, ground.environ, folder, ground.redactor))
    tools: dict[str, Tool] = {
        FETCH: WebFetch(browser, settings, most),
        SEARCH: WebSearch(browser, settings, most),
    }
    return WebParts(browser, WebShelf([tools[name] for name in browser.offered], settings))


@dataclass(frozen=True, slots=True)
class Offered:
    """What the model may call: tools of our own, those of servers, and the web."""

    own: tuple[Tool, ...]
    servers: Servers
    web: WebParts
    memory: Memory

    @property
    def shelves(self) -> tuple[ToolShelf, ...]:
        """Where the tools are that not every turn has."""
        others = (self.web.shelf, *([self.servers.shelf] if self.servers.shelf else ()))
        return (*others, LookShelf(self.memory.checklist, partial(_names, others)))

    @property
    def kinds(self) -> Mapping[str, str]:
        """What sort of tool each is, by name."""
        return {**{tool.spec.name: tool.spec.kind for tool in self.own}, **self.web.shelf.kinds}


def build_tools(
    ground: Ground,
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
        MemoryWrite(memory.files, ground.clock, ground.redactor),
        MemoryTree(memory.files),
        *((Remember(learnt.service), Forget(learnt.service, facts.recall)) if learnt else ()),
        *((GraphRecall(graph.service),) if graph.service else ()),
        Notify(stores.outbox, alerts.targets, alerts.dispatcher.wake),
        ScheduleCreate(agenda, ground.clock),
        ScheduleList(agenda),
        ScheduleCancel(agenda),
    )
    return Offered(own, build_servers(ground, forms), build_web(ground), memory)


def _names(shelves: Sequence[ToolShelf]) -> tuple[str, ...]:
    """The tools that beats have of these."""
    beat = TurnRequest(HEARTBEAT, "", "", origin=Origin.HEARTBEAT)
    return tuple(spec.name for shelf in shelves for spec in shelf.specs(beat))
