"""Builds the engine, with its prompts and its limits, out of the other parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.model import service_name
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.storage import Stores
from agentd.app.assembly.tools import Offered
from agentd.core.errors import ConfigError
from agentd.core.paths import prompt
from agentd.core.ports import Approver, TurnAudience
from agentd.engine.assembly import Engine, EnginePorts, Wording, build_engine
from agentd.engine.compaction.plan import smallest_window
from agentd.engine.completion import Completions
from agentd.providers.assembly import ProviderModel
from agentd.storage.ledger import SqliteServiceRecord


@asynccontextmanager
async def open_engine(
    runtime: RuntimeContext,
    stores: Stores,
    facts: FactParts,
    completions: Completions,
    model: ProviderModel,
    tools: Offered,
    events: TurnAudience,
    *,
    approver: Approver,
) -> AsyncIterator[Engine]:
    """Open the engine and repair its journal. No turn runs before `engine.sessions` is started.

    Raises ConfigError if the fixed prompt takes more than half of the tokens at which a flush
    begins.
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
        Wording(
            prompt("system"),
            prompt("light"),
            prompt("summary"),
            {"remember": prompt("system_facts")},
        ),
        runtime.limits,
        agent=runtime.config.agent,
        compaction=runtime.config.compaction,
        price=runtime.budget.price,
    )
    await _check_window(runtime, engine, facts)
    async with engine.sessions.open():
        yield engine


async def _check_window(runtime: RuntimeContext, engine: Engine, facts: FactParts) -> None:
    limits, compacting = runtime.limits, runtime.config.compaction
    # Facts take time to read, but have at most `prompt_tokens` tokens. Counting that many in their
    # place nearly always shows that the window is large enough.
    fixed = await engine.fixed_tokens(without=facts.sources) + runtime.config.facts.prompt_tokens
    if limits.flush_at < 2 * fixed and limits.flush_at < 2 * (fixed := await engine.fixed_tokens()):
        soft = compacting.memory_flush.soft_threshold_tokens
        least = smallest_window(fixed, soft, compacting.reserve_tokens)
        msg = f"[provider] context_window = {limits.window} is too small: the fixed prompt alone takes about {fixed} tokens"
        raise ConfigError(msg, cure=f"set it to {least} or more, or shorten the injected files")
