"""Doubles of every port, for agentd's tests and for those of its extensions. Never used by the
daemon.
"""

from agentd.testing.blobs import PNG, MemoryBlobs
from agentd.testing.chunks import MemoryChunks
from agentd.testing.clock import FakeClock
from agentd.testing.fact_doubles import FactIndexDouble, FactServiceDouble
from agentd.testing.graph_doubles import InMemoryGraph
from agentd.testing.job_doubles import MemoryBeats, MemoryJobStore
from agentd.testing.models import (
    Answers,
    HashEmbedder,
    MemoryServiceRecord,
    RecordingSink,
    Reply,
    ScriptedProvider,
    call,
    check_api_messages,
    check_messages,
)
from agentd.testing.session_doubles import MemorySessions
from agentd.testing.stores import MemoryIndexDouble, MemoryLedger, MemoryOutbox
from agentd.testing.workspace import MemoryWorkspace

__all__ = [
    "PNG",
    "Answers",
    "FactIndexDouble",
    "FactServiceDouble",
    "FakeClock",
    "HashEmbedder",
    "InMemoryGraph",
    "MemoryBeats",
    "MemoryBlobs",
    "MemoryChunks",
    "MemoryIndexDouble",
    "MemoryJobStore",
    "MemoryLedger",
    "MemoryOutbox",
    "MemoryServiceRecord",
    "MemorySessions",
    "MemoryWorkspace",
    "RecordingSink",
    "Reply",
    "ScriptedProvider",
    "call",
    "check_api_messages",
    "check_messages",
]
