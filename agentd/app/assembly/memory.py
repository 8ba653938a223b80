"""Opens the workspace, its search index, and the parts that read, save and archive notes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from msgspec import Struct

from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.storage import Stores
from agentd.automation.heartbeat.beat_sink import HEARTBEAT
from agentd.core.health import Problem
from agentd.core.paths import shipped_path
from agentd.core.ports import EventSink, Ledger
from agentd.core.turn import Origin, SessionKey, SessionKind, Usage
from agentd.core.workspace import FileView, Reader
from agentd.engine.assembly import slice_tokens
from agentd.engine.watchers import NoticeCallback, TurnEndCallback
from agentd.engine.workers import CoalescingWorker
from agentd.memory.deletion import Retention
from agentd.memory.flush import MemoryFlush
from agentd.memory.index.embedding import assembly
from agentd.memory.index.embedding.assembly import Embedders
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import PatientEmbedder, patient
from agentd.memory.recall import MemoryRecall
from agentd.workspace import template
from agentd.workspace.archiving import Archiving
from agentd.workspace.files import Files
from agentd.workspace.injection import Injection
from agentd.workspace.watching import Watching

_BEATS = Reader(HEARTBEAT, SessionKind.OWNER)
_NOBODY = SessionKey("")  # vectors serve all sessions, so none is charged for them


class Memory(Struct, frozen=True, kw_only=True):
    """The parts that read, search and save the user's files. The engine's events go to `watchers`;
    `work` runs in the background.
    """

    files: Files
    injection: Injection
    embedders: Embedders
    asked: tuple[PatientEmbedder, ...]  # the embedders of searches, the best first
    index: LiveIndex
    indexer: Indexer
    watching: Watching
    recall: MemoryRecall
    flush: MemoryFlush
    retention: Retention
    archiving: Archiving
    template: Mapping[str, frozenset[str]]  # the lines of the shipped files, by path
    watchers: tuple[EventSink, ...]
    work: tuple[Work, ...]

    async def checklist(self) -> FileView:
        """Return HEARTBEAT.md as beats see it. Raises what `Workspace.read` does."""
        return await self.files.read("HEARTBEAT.md", _BEATS)

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of files, index, embedders, watching and archiving."""
        finding = (self.embedders, self.index, self.indexer)
        parts = (self.files, *finding, self.watching, self.archiving)
        return tuple(problem for part in parts for problem in part.problems())


@asynccontextmanager
async def open_memory(runtime: RuntimeContext, stores: Stores) -> AsyncIterator[Memory]:
    """Open the workspace and its index; a missing workspace is created from the template. Raises
    WorkspaceError.
    """
    runtime.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # leaves other cores to other programs
    settings, clock, root = runtime.config.workspace, runtime.clock, runtime.workspace
    if not root.is_dir():
        template.create(root, shipped_path("workspace_template"))
    extras = runtime.config.memory_search.extras()
    files = Files(
        root,
        settings,
        clock,
        {**settings.scopes(), **extras},
        runtime.places.versions,
        runtime.redactor,
    )
    await files.clear_strays()
    injection = Injection(files, settings)
    await injection.audit(SessionKind.OWNER)
    async with (
        open_embedders(runtime, stores.ledger) as embedders,
        _open_index(runtime, stores, asked := patient(embedders.chain, clock)) as index,
    ):
        yield _assemble(runtime, stores, files, injection, embedders, asked, index)


def _open_index(
    runtime: RuntimeContext, stores: Stores, embedders: Sequence[PatientEmbedder]
) -> AbstractAsyncContextManager[LiveIndex]:
    settings = runtime.config.memory_search
    return LiveIndex.open(
        stores.chunks,
        runtime.clock,
        embedders,
        settings,
        redactor=runtime.redactor,
        file=runtime.places.mirror,
    )


def _assemble(
    runtime: RuntimeContext,
    stores: Stores,
    files: Files,
    injection: Injection,
    embedders: Embedders,
    asked: tuple[PatientEmbedder, ...],
    index: LiveIndex,
) -> Memory:
    settings, clock = runtime.config.workspace, runtime.clock
    indexing = runtime.config.memory_search
    template_lines = template.lines(shipped_path("workspace_template"))
    indexer = Indexer(index, files, stores.sessions, clock, indexing, template_lines)
    roots = (runtime.workspace, *settings.scopes().values(), *indexing.extras().values())
    watching = Watching(roots, indexer.hint, clock, is_counted=files.is_as_left)

    def mark() -> tuple[int, int] | None:
        told = watching.mark
        return None if told is None else (told, files.writes)

    indexer.trust(mark)
    flush = MemoryFlush(
        stores.sessions,
        runtime.config.compaction.memory_flush,
        clock,
        lambda: slice_tokens(runtime.limits),
        settings.daily_dir,
    )
    retention = Retention(
        stores.retention,
        indexer,
        clock,
        runtime.config.storage.retention_days,
        others=(stores.typed.erase_before, lambda _: stores.blobs.sweep()),
    )
    archiving = Archiving(files, runtime.workspace, runtime.places.versions, clock, settings)
    watched = (watching.run,) if indexing.watch else ()
    audit = CoalescingWorker("audit", partial(injection.audit, SessionKind.OWNER))
    return Memory(
        files=files,
        injection=injection,
        embedders=embedders,
        asked=asked,
        index=index,
        indexer=indexer,
        watching=watching,
        recall=MemoryRecall(index, indexer, stores.sessions, files),
        flush=flush,
        retention=retention,
        archiving=archiving,
        template=template_lines,
        watchers=(TurnEndCallback(indexer.touch), NoticeCallback("compaction", audit.nudge)),
        work=(*embedders.work, indexer.run, index.run, audit.run, archiving.run, *watched),
    )


def open_embedders(
    runtime: RuntimeContext, ledger: Ledger
) -> AbstractAsyncContextManager[Embedders]:
    """Open the best embedder and the one that replaces it when it fails. The tokens and costs of an
    embedding service are charged in `ledger`.
    """

    async def spent(model: str, tokens: int) -> None:
        usage = Usage(tokens)
        cost = runtime.budget.price(model, usage)
        await ledger.charge(_NOBODY, Origin.EMBEDDING, model, usage, cost)

    return assembly.open_embedders(
        runtime.config.memory_search,
        runtime.environ,
        runtime.places.state_dir,
        runtime.clock,
        spent,
        runtime.redactor,
    )
