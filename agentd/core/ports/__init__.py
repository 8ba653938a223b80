"""Every seam of agentd: what the inner layers need from the outer ones.

runtime     Clock, Probe
model       Provider, Breaker, ServiceRecord, Ledger, Tool, FileTool, ToolSource, ToolHost,
            Approver, FormAsker, EventSink, TurnAudience, SubmittedTurn, TurnRunner, ContextSource,
            CompactionHook
session_stores  Inbox, Transcripts, Contexts, SessionRegistry, SessionStore, Blobs, Journal
workspace   NoteRules, NoteReader, NoteWriter, Workspace
user_facts  Facts, FactService, FactStore, FactIndex, FactVectorStore, ErasureStore, ProposalStore,
            Eraser, SearchableTexts, TextFilter
concept_graph  GraphRecords, GraphWriter, GraphReader, EpisodeReader, GraphStore, ProgramStates,
            ShareStore, Walk
searching   Recall, IndexWriter, IndexSearch, MemoryIndex, ChunkIndex, ChunkWriter, ChunkReader,
            VectorBacklog, ChunkStore, Embedder
automation  BeatStore, JobBook, JobRuns, JobStore, Triggers, Outbox, AlertSink

Implementations do not inherit from these; `agentd/app/assembly/` is where the type checker proves
that they fit. Store methods are whole transactions: when one returns, what it did is durable; when
it raises, nothing of it happened. Every store method may raise StorageError, StorageFull when the
disk is full. Doubles of all of them are in `agentd.testing`.
"""

from __future__ import annotations

from agentd.core.ports.automation import (
    AlertSink,
    BeatStore,
    JobBook,
    JobRuns,
    JobStore,
    Outbox,
    Triggers,
)
from agentd.core.ports.concept_graph import (
    EpisodeReader,
    GraphReader,
    GraphRecords,
    GraphStore,
    GraphWriter,
    ProgramStates,
    ShareStore,
    Walk,
)
from agentd.core.ports.model import (
    Approver,
    Breaker,
    CompactionHook,
    ContextSource,
    EventSink,
    FileTool,
    FormAsker,
    Ledger,
    Provider,
    ServiceRecord,
    SubmittedTurn,
    Tool,
    ToolHost,
    ToolSource,
    TurnAudience,
    TurnRunner,
)
from agentd.core.ports.runtime import Clock, Probe
from agentd.core.ports.searching import (
    ChunkIndex,
    ChunkReader,
    ChunkStore,
    ChunkWriter,
    Embedder,
    IndexSearch,
    IndexWriter,
    MemoryIndex,
    Recall,
    VectorBacklog,
)
from agentd.core.ports.session_stores import (
    Blobs,
    Contexts,
    Inbox,
    Journal,
    SessionRegistry,
    SessionStore,
    Transcripts,
)
from agentd.core.ports.user_facts import (
    Eraser,
    ErasureStore,
    FactIndex,
    Facts,
    FactService,
    FactStore,
    FactVectorStore,
    ProposalStore,
    SearchableTexts,
    TextFilter,
)
from agentd.core.ports.workspace import NoteReader, NoteRules, NoteWriter, Workspace

__all__ = [
    "AlertSink",
    "Approver",
    "BeatStore",
    "Blobs",
    "Breaker",
    "ChunkIndex",
    "ChunkReader",
    "ChunkStore",
    "ChunkWriter",
    "Clock",
    "CompactionHook",
    "ContextSource",
    "Contexts",
    "Embedder",
    "EpisodeReader",
    "Eraser",
    "ErasureStore",
    "EventSink",
    "FactIndex",
    "FactService",
    "FactStore",
    "FactVectorStore",
    "Facts",
    "FileTool",
    "FormAsker",
    "GraphReader",
    "GraphRecords",
    "GraphStore",
    "GraphWriter",
    "Inbox",
    "IndexSearch",
    "IndexWriter",
    "JobBook",
    "JobRuns",
    "JobStore",
    "Journal",
    "Ledger",
    "MemoryIndex",
    "NoteReader",
    "NoteRules",
    "NoteWriter",
    "Outbox",
    "Probe",
    "ProgramStates",
    "ProposalStore",
    "Provider",
    "Recall",
    "SearchableTexts",
    "ServiceRecord",
    "SessionRegistry",
    "SessionStore",
    "ShareStore",
    "SubmittedTurn",
    "TextFilter",
    "Tool",
    "ToolHost",
    "ToolSource",
    "Transcripts",
    "Triggers",
    "TurnAudience",
    "TurnRunner",
    "VectorBacklog",
    "Walk",
    "Workspace",
]
