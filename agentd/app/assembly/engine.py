"""Builds the engine, with its prompts and its limits, out of the other parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.model import service_name
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.storage import Stores
from agentd.app.assembly.tools import ToolParts
from agentd.core.errors import ConfigError
from agentd.core.paths import prompt
from agentd.core.ports import Approver, TurnAudience
from agentd.engine.assembly import Engine, EnginePorts, build_engine
from agentd.engine.compaction.plan import smallest_window
from agentd.engine.completion import Completions
from agentd.engine.context import Instructions
from agentd.providers.assembly import ProviderModel
from agentd.storage.ledger import SqliteServiceRecord
from agentd.workspace.injection import Injection

_LEAST_FILES = 900  # tokens that files of the workspace get at least: an untouched one has fewer


@asynccontextmanager
async def open_engine(
    runtime: RuntimeContext,
    stores: Stores,
    facts: FactParts,
    completions: Completions,
    model: ProviderModel,
    tools: ToolParts,
    events: TurnAudience,
    *,
    approver: Approver,
) -> AsyncIterator[Engine]:
    """Open the engine and repair its journal. No turn runs before `engine.sessions` is started.

    Raises ConfigError if the fixed prompt, with little text of the workspace, takes more than half
    of the tokens at which a flush begins.
    """
    memory, tool_source = tools.memory, tools.servers.tool_source
    ports = EnginePorts(
        store=stores.sessions,
        journal=stores.journal,
        ledger=stores.ledger,
        provider=model.provider,
        approver=approver,
        events=events,
        clock=runtime.clock,
        tools=tools.own,
        sources=(memory.injection, *facts.sources, *([tool_source] if tool_source else ())),
        tool_sources=tools.tool_sources,
        hooks=(memory.flush, *facts.hooks),
        offer=model.offer,
        completions=completions,
        record=SqliteServiceRecord(stores.db, runtime.clock, service_name(runtime, model)),
        policy=runtime.tainted_turns,
        redactor=runtime.redactor,
        stopping=runtime.stopping,
    )
    engine = build_engine(
        ports,
        Instructions(prompt("system"), prompt("light"), {"remember": prompt("system_facts")}),
        runtime.limits,
        summary_prompt=prompt("summary"),
        agent=runtime.config.agent,
        compaction=runtime.config.compaction,
        price=runtime.budget.price,
    )
    await _fit_window(runtime, engine, facts, memory.injection)
    async with engine.sessions.open():
        yield engine


async def _fit_window(
    runtime: RuntimeContext, engine: Engine, facts: FactParts, injection: Injection
) -> None:
    """Limit the files of the workspace to what the window leaves them. They grow by themselves, so
    a daemon that has run with this window must start with it again. Raises ConfigError if the rest
    alone leaves them nearly nothing.
    """
    limits, compacting = runtime.limits, runtime.config.compaction
    most = limits.flush_at // 2
    least = await engine.fixed_tokens(without=(injection, *facts.sources)) + _LEAST_FILES
    if most < least:
        soft = compacting.memory_flush.soft_threshold_tokens
        window = smallest_window(least, soft, compacting.reserve_tokens)
        msg = (
            f"[provider] context_window = {limits.window} is too small: the fixed prompt alone "
            f"takes about {least} tokens"
        )
        raise ConfigError(msg, cure=f"set it to {window} or more")
    room = most - (least - _LEAST_FILES) - runtime.config.facts.prompt_tokens
    if room < _LEAST_FILES:  # reserve only what facts take now: they may never fill their budget
        room = most - await engine.fixed_tokens(without=(injection,))
    injection.limit(max(room, _LEAST_FILES))
