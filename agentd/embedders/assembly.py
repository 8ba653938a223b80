"""The chosen embedder, and the one that answers until its vectors are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from agentd.domain.health import Problem
from agentd.embedders.cached import Cached
from agentd.embedders.choice import Choice, Service, choose
from agentd.embedders.daily import DailyTokens
from agentd.embedders.environment import clean
from agentd.embedders.export import Exporter
from agentd.embedders.late import packaged
from agentd.embedders.openai import OpenAIEmbedder, Spent
from agentd.embedders.places import hub_marker
from agentd.embedders.settings import EmbedderSettings
from agentd.embedders.spec import Spec
from agentd.embedders.worker import Worker
from agentd.errors import EmbedderFault
from agentd.paths import ensure_private_dir
from agentd.ports import Clock, Embedder
from agentd.redaction import Redactor

Work = Callable[[], Coroutine[Any, Any, None]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Embedders:
    """`best` is the embedder whose vectors are wanted, `first` the quick one that answers while they
    are missing; None where there is none. `work` runs as long as they are used; `refusals` say why the
    best is not the one that was asked for.
    """

    choice: Choice
    best: Embedder | None
    first: Embedder | None
    work: tuple[Work, ...]
    exporter: Exporter
    refusals: tuple[Problem, ...] = ()
    worker: Worker | None = None

    @property
    def chain(self) -> tuple[Embedder, ...]:
        """Those that there are, the best first."""
        return tuple(embedder for embedder in (self.best, self.first) if embedder is not None)

    def status(self) -> dict[str, str]:
        """For `agentd status`: which was chosen, why, what its process is at, and, where it is not the one
        that was asked for, the code of the problem as `reason`.
        """
        progress = self.worker.progress if self.worker is not None else ""
        why = "; ".join(filter(None, (self.choice.why, progress)))
        degraded = {"reason": self.refusals[0].code} if self.refusals else {}
        return {"provider": self.choice.kind, "why": why, **degraded}

    def problems(self) -> tuple[Problem, ...]:
        """Why it is not the one that was asked for. Who asks it tells of its failures."""
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
    """What the configuration and the installed packages lead to; loads no model. Models that are
    exported or fetched stand in `models` below the state directory; `spent` keeps account of what a
    service is sent; what `redactor` finds is not sent.
    """
    models = state_dir / "models"
    choice = await asyncio.to_thread(choose, settings, environ, models)
    log.info("embedder", provider=choice.kind, why=choice.why)
    problems = [choice.problem] if choice.problem else []
    static: Embedder | None = None
    if choice.kind != "none":
        try:
            static = await asyncio.to_thread(packaged)
        except EmbedderFault as fault:
            problems.append(Problem("embedder_unavailable", fault.message, fault.cure))
    make = partial(
        Embedders,
        choice,
        exporter=Exporter(settings.embedder, environ, models),
        refusals=tuple(problems),
    )
    if choice.spec is not None:
        worker = _worker(choice.spec, environ, models, clock)
        yield make(best=Cached(worker), first=static, work=(worker.run,), worker=worker)
    elif choice.service is not None:
        redactor = redactor or Redactor()
        if choice.service.secret is not None:
            redactor.add(choice.service.secret.reveal())
        state_dir = ensure_private_dir(state_dir)
        remote = _remote(choice.service, settings, state_dir, clock, spent, redactor)
        try:
            yield make(best=Cached(remote), first=static, work=())
        finally:
            await remote.aclose()
    else:
        yield make(best=static, first=None, work=())


def _worker(spec: Spec, environ: Mapping[str, str], models: Path, clock: Clock) -> Worker:
    folder = Path(spec.download)
    is_online = bool(spec.download) and not hub_marker(folder, spec.source, spec.revision).is_file()
    return Worker(spec, clean(environ, models, spec.threads, is_online=is_online), models, clock)


def _remote(
    service: Service,
    settings: EmbedderSettings,
    state_dir: Path,
    clock: Clock,
    spent: Spent | None,
    redactor: Redactor,
) -> OpenAIEmbedder:
    model = settings.embedder
    tokens = DailyTokens(state_dir / "embedder_tokens.json", model.daily_tokens, clock)
    return OpenAIEmbedder(service, model, tokens, clock, spent=spent, redactor=redactor)
