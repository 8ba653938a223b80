"""Every seam of agentd: what the inner layers need from the outer ones.

runtime     Clock, Probe
model       Provider, Breaker, ServiceRecord, Ledger, Tool, ToolShelf, Gate, Approver, EventSink, TurnAudience, ContextSource, CompactionHook
session_stores  Inbox, Transcripts, Contexts, SessionRegistry, SessionStore, Blobs, Journal
workspace   Workspace
knowledge   Facts, FactService, FactStore, FactIndex, FactVectorStore, ErasureStore, ProposalStore, Eraser, GraphRecords, GraphStore, ProgramStates, ShareStore, Walk, Writings, Wanted
searching   Recall, MemoryIndex, ChunkStore, Embedder
automation  BeatStore, JobStore, Triggers, Outbox, AlertSink

Implementations do not inherit from these; `agentd/app/assembly/` is where the type checker proves that
they fit. Store methods are whole transactions: when one returns, what it did is durable; when it
raises, nothing of it happened. Every store method may raise StorageError, StorageFull when the disk is
full. Doubles of all of them are in `agentd.testing`.
"""

from __future__ import annotations

from agentd.core.ports.automation import AlertSink, BeatStore, JobStore, Outbox, Triggers
from agentd.core.ports.knowledge import (
    Eraser,
    ErasureStore,
    FactIndex,
    Facts,
    FactService,
    FactStore,
    FactVectorStore,
    GraphRecords,
    GraphStore,
    ProgramStates,
    ProposalStore,
    ShareStore,
    Walk,
    Wanted,
    Writings,
)
from agentd.core.ports.model import (
    Approver,
    Breaker,
    CompactionHook,
    ContextSource,
    EventSink,
    Gate,
    Ledger,
    Provider,
    ServiceRecord,
    Tool,
    ToolShelf,
    TurnAudience,
)
from agentd.core.ports.runtime import Clock, Probe
from agentd.core.ports.searching import ChunkStore, Embedder, MemoryIndex, Recall
from agentd.core.ports.session_stores import (
    Blobs,
    Contexts,
    Inbox,
    Journal,
    SessionRegistry,
    SessionStore,
    Transcripts,
)
from agentd.core.ports.workspace import Workspace

__all__ = [
    "AlertSink",
    "Approver",
    "BeatStore",
    "Blobs",
    "Breaker",
    "ChunkStore",
    "Clock",
    "CompactionHook",
    "ContextSource",
    "Contexts",
    "Embedder",
    "Eraser",
    "ErasureStore",
    "EventSink",
    "FactIndex",
    "FactService",
    "FactStore",
    "FactVectorStore",
    "Facts",
    "Gate",
    "GraphRecords",
    "GraphStore",
    "Inbox",
    "JobStore",
    "Journal",
    "Ledger",
    "MemoryIndex",
    "Outbox",
    "Probe",
    "ProgramStates",
    "ProposalStore",
    "Provider",
    "Recall",
    "ServiceRecord",
    "SessionRegistry",
    "SessionStore",
    "ShareStore",
    "Tool",
    "ToolShelf",
    "Transcripts",
    "Triggers",
    "TurnAudience",
    "Walk",
    "Wanted",
    "Workspace",
    "Writings",
]
