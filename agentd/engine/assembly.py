"""Builds the engine from implementations of its ports."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct, field

from agentd.core.ports import (
    Approver,
    Clock,
    CompactionHook,
    ContextSource,
    Journal,
    Ledger,
    Provider,
    ServiceRecord,
    SessionStore,
    Tool,
    ToolSource,
    TurnAudience,
)
from agentd.core.redaction import Redactor
from agentd.core.transcript import NOTHING_OFFERED, AvailableChoices, History
from agentd.core.turn import MAIN, TurnRequest, Usage
from agentd.engine import tokens
from agentd.engine.approvals import BY_DEFAULT, Approvals, Grants, TaintPolicy
from agentd.engine.budget import Charges
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.manager import Compaction
from agentd.engine.compaction.plan import Thresholds
from agentd.engine.compaction.summary import Summariser, longest_summary
from agentd.engine.completion import Completions
from agentd.engine.context import Instructions, PromptGatherer
from agentd.engine.context_requests import ContextRequests
from agentd.engine.context_room import ContextRoom
from agentd.engine.hook_questions import HookQuestions
from agentd.engine.loop import TurnLoop
from agentd.engine.outage import Outage, OutageAwareProvider
from agentd.engine.queue import SessionQueue
from agentd.engine.recovery import Recovery
from agentd.engine.session_contexts import SessionContexts
from agentd.engine.sessions import SessionTurnRunner
from agentd.engine.settings import AgentSettings
from agentd.engine.toolbox import Toolbox
from agentd.engine.turn import TurnExecution
from agentd.engine.workers import Stopping, Tasks


class EnginePorts(Struct, frozen=True):
    """The implementations of ports that the engine runs on.

    - `sources` add blocks to prompts; `tools` are offered to the model in this order;
      `tool_sources` offer tools that only some turns have;
    - `hooks` run in order before rows leave a context;
    - `events` is the audience of turns that are not silent; `offer` lists the choices of a session;
    - `completions` asks the model outside of turns, for other parts too (None: the engine makes its
      own);
    - `record` tells whether the model's service has ever answered (None: messages do not wait for
      it);
    - `policy` decides what tainted turns may call; `redactor` finds secrets;
    - `stopping` is shared with `completions`; the engine sets it when it is drained.
    """

    store: SessionStore
    journal: Journal
    ledger: Ledger
    provider: Provider
    approver: Approver
    events: TurnAudience
    clock: Clock
    tools: tuple[Tool, ...] = ()
    sources: tuple[ContextSource, ...] = ()
    hooks: tuple[CompactionHook, ...] = ()
    offer: AvailableChoices = NOTHING_OFFERED
    completions: Completions | None = None
    record: ServiceRecord | None = None
    policy: TaintPolicy = BY_DEFAULT
    tool_sources: tuple[ToolSource, ...] = ()
    redactor: Redactor = field(default_factory=Redactor)
    stopping: Stopping = field(default_factory=Stopping)


class Engine(Struct, frozen=True):
    """The assembled engine: `sessions` runs turns, `requests` carries out what the owner asks of
    contexts, `tasks` owns work around turns, the other parts report on them.
    """

    sessions: SessionTurnRunner
    requests: ContextRequests
    tasks: Tasks
    compaction: Compaction
    outage: Outage
    builder: PromptGatherer
    toolbox: Toolbox

    async def fixed_tokens(self, without: Collection[ContextSource] = ()) -> int:
        """Return the estimated tokens that every call of the main session carries besides the
        conversation: the system prompt, without the text of the sources `without`, and the tools.
        """
        request = TurnRequest(MAIN, "", "")
        context = await self.builder.for_turn(request, History(MAIN), without=without)
        return tokens.of_fixed(context.system, context.tools)


def slice_tokens(limits: Thresholds) -> int:
    """Return how many tokens of conversation one flush or summary call may carry: half of
    `flush_at`, so that prompt and answer fit beside them.
    """
    return limits.flush_at // 2


def build_engine(
    ports: EnginePorts,
    instructions: Instructions,
    limits: Thresholds,
    *,
    summary_prompt: str,
    agent: AgentSettings,
    compaction: CompactionSettings,
    price: Callable[[str, Usage], float],
) -> Engine:
    """Return an engine that is ready to be opened; nothing is read or written yet. `summary_prompt`
    asks for a summary where the settings name no other; `price` returns the US dollars that a usage
    of a model costs.
    """
    store, clock = ports.store, ports.clock
    stopping = ports.stopping
    outage = Outage(clock, ports.record or _NeverAnswered(), stopping)
    provider = OutageAwareProvider(ports.provider, outage)
    events = ports.events
    grants, charges = Grants(), Charges(ports.ledger, clock, price)
    toolbox = _toolbox(ports, agent, grants)
    loop = _loop(ports, charges, toolbox, provider, agent)
    builder = PromptGatherer(ports.sources, toolbox, clock, provider, instructions, ports.offer)
    completions = ports.completions or Completions(provider, charges, stopping=stopping)
    summariser = _summariser(completions, clock, summary_prompt, limits, compaction)
    shrink = Compaction(store, ports.hooks, summariser, clock, limits, compaction)
    questions = HookQuestions(store, loop, builder, toolbox, clock, stopping)
    queue = SessionQueue(agent.max_queued, agent.max_concurrent_turns)
    contexts = SessionContexts(store, clock, limits.window)
    room = ContextRoom(
        store,
        contexts,
        shrink,
        questions,
        events,
        clock,
        grants,
        background=compaction.background,
        idle_reset=agent.idle_reset,
    )
    recovery = Recovery(store, ports.journal, toolbox, loop)
    execution = TurnExecution(store, loop, builder, contexts, room, outage, clock)
    tasks = Tasks(stopping)
    requests = ContextRequests(
        store, contexts, shrink, room, builder, queue, tasks=tasks, clock=clock
    )
    sessions = SessionTurnRunner(
        store, execution, contexts, room, recovery, queue, events, outage=outage, tasks=tasks
    )
    return Engine(sessions, requests, tasks, shrink, outage, builder, toolbox)


def _loop(
    ports: EnginePorts, charges: Charges, toolbox: Toolbox, provider: Provider, agent: AgentSettings
) -> TurnLoop:
    return TurnLoop(
        ports.store,
        ports.journal,
        charges,
        toolbox,
        provider,
        ports.clock,
        ports.stopping,
        max_model_calls=agent.max_model_calls,
        redactor=ports.redactor,
    )


def _toolbox(ports: EnginePorts, agent: AgentSettings, grants: Grants) -> Toolbox:
    return Toolbox(
        ports.tools,
        ports.journal,
        Approvals(ports.policy, grants, ports.approver),
        ports.clock,
        agent,
        redactor=ports.redactor,
        tool_sources=ports.tool_sources,
    )


def _summariser(
    completions: Completions,
    clock: Clock,
    prompt: str,
    limits: Thresholds,
    settings: CompactionSettings,
) -> Summariser:
    return Summariser(
        completions,
        clock,
        settings.summary_prompt or prompt,
        settings.summary_model,
        slice_tokens(limits),
        longest_summary(limits.window),
        settings.timeout.total_seconds(),
    )


class _NeverAnswered:
    """The record of a service that has never answered, so that no message waits for it."""

    async def has_answered(self) -> bool:
        """Return False."""
        return False

    async def record_answer(self) -> None:
        """Record nothing."""
