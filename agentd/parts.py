"""The parts of a daemon, in the groups in which `app.py` builds them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, MutableMapping
from dataclasses import dataclass
from importlib.resources import files as package_files
from typing import Any

from agentd.alerts.dispatch import Dispatcher
from agentd.alerts.targets import Targets
from agentd.config import Config
from agentd.engine.assembly import Engine
from agentd.engine.budget import Budget
from agentd.heartbeat.pulse import Pulse
from agentd.jobs.jobs import Jobs
from agentd.memory.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.paths import Places
from agentd.ports import Clock
from agentd.providers.assembly import Model
from agentd.scheduler.aps import Scheduler
from agentd.storage.index import SqliteIndex
from agentd.storage.jobs import SqliteJobs
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.schedule import SqliteJobBook
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.workspace.files import Files
from agentd.workspace.injection import Injection

Work = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Stores:
    """The two databases and what they hold."""

    db: Database
    index_db: Database
    sessions: SqliteSessions
    journal: SqliteJournal
    ledger: SqliteLedger
    jobs: SqliteJobs
    book: SqliteJobBook
    outbox: SqliteOutbox
    index: SqliteIndex


@dataclass(frozen=True, slots=True)
class Memory:
    """The user's files and what finds things in them."""

    files: Files
    injection: Injection
    indexer: Indexer
    recall: MemoryRecall


@dataclass(frozen=True, slots=True)
class Alerting:
    """What carries alerts; `targets` says where those of an origin go."""

    dispatcher: Dispatcher
    targets: Targets
    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """All that looks after the daemon may look at."""

    config: Config
    places: Places
    clock: Clock
    environ: MutableMapping[str, str]
    stores: Stores
    memory: Memory
    model: Model
    alerts: Alerting
    engine: Engine
    pulse: Pulse
    jobs: Jobs
    scheduler: Scheduler
    budget: Budget


def prompt(name: str) -> str:
    """One of the texts that come with agentd."""
    folder = package_files("agentd.prompts")
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()
