"""Every seam of agentd: what the inner layers need from the outer ones.

clock      Clock
model      Provider, Breaker, ServiceRecord, Ledger
turns      Tool, ToolShelf, Gate, Approver, EventSink, Audience, ContextSource, CompactionHook
sessions   SessionStore, Blobs, Journal
workspace  Workspace
facts      Facts, FactService, FactStore, FactIndex, FactVectorStore, ErasureStore, ProposalStore, Eraser
graph      GraphRecords, GraphStore, ProgramStates, ShareStore, Walk
memory     Recall, MemoryIndex, ChunkStore, Embedder
schedule   BeatStore, JobStore, Triggers
alerts     Outbox, AlertSink
health     Probe
writings   Writings, Wanted

Implementations do not inherit from these; `agentd/assembly/` is where the type checker proves that
they fit. Store methods are whole transactions: when one returns, what it did is durable; when it
raises, nothing of it happened. Every store method may raise StorageError, StorageFull when the disk is
full. Doubles of all of them are in `agentd.testing`.
"""

from __future__ import annotations

from agentd.ports.alerts import AlertSink, Outbox
from agentd.ports.clock import Clock
from agentd.ports.facts import (
    Eraser,
    ErasureStore,
    FactIndex,
    Facts,
    FactService,
    FactStore,
    FactVectorStore,
    ProposalStore,
)
from agentd.ports.graph import GraphRecords, GraphStore, ProgramStates, ShareStore, Walk
from agentd.ports.health import Probe
from agentd.ports.memory import ChunkStore, Embedder, MemoryIndex, Recall
from agentd.ports.model import Breaker, Ledger, Provider, ServiceRecord
from agentd.ports.schedule import BeatStore, JobStore, Triggers
from agentd.ports.sessions import Blobs, Journal, SessionStore
from agentd.ports.turns import (
    Approver,
    Audience,
    CompactionHook,
    ContextSource,
    EventSink,
    Gate,
    Tool,
    ToolShelf,
)
from agentd.ports.workspace import Workspace
from agentd.ports.writings import Wanted, Writings

__all__ = [
    "AlertSink",
    "Approver",
    "Audience",
    "BeatStore",
    "Blobs",
    "Breaker",
    "ChunkStore",
    "Clock",
    "CompactionHook",
    "ContextSource",
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
    "SessionStore",
    "ShareStore",
    "Tool",
    "ToolShelf",
    "Triggers",
    "Walk",
    "Wanted",
    "Workspace",
    "Writings",
]
