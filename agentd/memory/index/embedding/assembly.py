"""Opens the configured embedder, its fallbacks, and the word table that answers until they can."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct

from agentd.core.errors import EmbedderFault
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir
from agentd.core.ports import Clock, Embedder
from agentd.core.redaction import Redactor
from agentd.memory.index.embedding.cached import Cached
from agentd.memory.index.embedding.choice import EmbedderChoice, EmbeddingService, choose_all
from agentd.memory.index.embedding.daily import DailyTokens
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, ModelSettings
from agentd.memory.index.embedding.export import Exporter, clean
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.embedding.openai import OpenAIEmbedder, Spent
from agentd.memory.index.embedding.places import hub_marker
from agentd.memory.index.embedding.spec import ModelSpec
from agentd.memory.index.embedding.worker import Worker

log = structlog.get_logger()


Work = Callable[[], Coroutine[Any, Any, None]]


class Embedders(Struct, frozen=True):
    """The embedders in use. `chain` holds them in order of preference: the configured one, its
    fallbacks, and the word table, which answers until the others have made their vectors; it is
    empty without an embedder. Run the coroutines of `work` as long as the embedders are used.
    `refusals` are the problems that kept a configured embedder from being used.
    """

    choices: tuple[EmbedderChoice, ...]
    chain: tuple[Embedder, ...]
    work: tuple[Work, ...]
    exporter: Exporter
    refusals: tuple[Problem, ...] = ()
    workers: tuple[Worker, ...] = ()

    def status(self) -> dict[str, Any]:
        """Return the part of `agentd status` on embedders: which one was chosen and why, what its
        process is doing, its fallbacks, and as `reason` the code of the first refusal, if there is
        one.
        """
        progress = [worker.progress for worker in self.workers]
        first, *others = self.choices
        told: dict[str, Any] = {"provider": first.kind}
        told["why"] = "; ".join(filter(None, (first.why, *progress)))
        if others:
            told["fallback"] = [{"provider": each.kind, "why": each.why} for each in others]
        if self.refusals:
            told["reason"] = self.refusals[0].code
        return told

    def problems(self) -> tuple[Problem, ...]:
        """Return why a configured embedder is not used. Failures at run time are reported by the
        caller of the embedder.
        """
        return self.refusals


@asynccontextmanager
async def open_embedders(
    settings: EmbedderSettings,
    environ: Mapping[str, str],
    state_dir: Path,
    clock: Clock,
    spent: Spent | None = None,
    redactor: Redactor | None = None,
) -> AsyncIterator[Embedders]:
    """Open the embedders that the configuration and the installed packages allow; load no model
    yet.

    Exported and fetched models lie in `models` below `state_dir`. `spent` records the tokens that
    services were sent; secrets that `redactor` finds are not sent.
    """
    models = state_dir / "models"
    choices = await asyncio.to_thread(choose_all, settings, environ, models)
    for choice in choices:
        log.info("embedder", provider=choice.kind, why=choice.why)
    problems = [choice.problem for choice in choices if choice.problem]
    chain: list[Embedder] = []
    workers: list[Worker] = []
    redactor = redactor or Redactor()
    async with AsyncExitStack() as stack:
        for model, choice in zip((settings.embedder, *settings.fallback), choices, strict=True):
            if choice.spec is not None:
                workers.append(_worker(choice.spec, environ, models, clock))
                chain.append(Cached(workers[-1]))
            elif choice.service is not None:
                remote = _remote(choice.service, model, state_dir, clock, spent, redactor)
                stack.push_async_callback(remote.aclose)
                chain.append(Cached(remote))
        if choices[0].kind != "none":
            try:
                chain.append(await asyncio.to_thread(packaged_static))
            except EmbedderFault as fault:
                problems.append(Problem("embedder_unavailable", fault.message, fault.cure))
        yield Embedders(
            choices,
            tuple(chain),
            tuple(worker.run for worker in workers),
            Exporter(settings.embedder, environ, models),
            tuple(problems),
            tuple(workers),
        )


def _worker(spec: ModelSpec, environ: Mapping[str, str], models: Path, clock: Clock) -> Worker:
    folder = Path(spec.download)
    is_online = bool(spec.download) and not hub_marker(folder, spec.source, spec.revision).is_file()
    return Worker(spec, clean(environ, models, spec.threads, is_online=is_online), models, clock)


def _remote(
    service: EmbeddingService,
    settings: ModelSettings,
    state_dir: Path,
    clock: Clock,
    spent: Spent | None,
    redactor: Redactor,
) -> OpenAIEmbedder:
    if service.secret is not None:
        redactor.add(service.secret.reveal())
    name = hashlib.sha256(service.identity.encode()).hexdigest()[:12]
    file = ensure_private_dir(state_dir) / f"embedder_tokens-{name}.json"
    tokens = DailyTokens(file, settings.daily_tokens, clock)
    return OpenAIEmbedder(service, settings, tokens, clock, spent=spent, redactor=redactor)
