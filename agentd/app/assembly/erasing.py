"""What erases words that are to be forgotten, place by place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.ground import Ground
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.storage import Stores
from agentd.app.logs import OpenLog
from agentd.core.erasure import Erasure
from agentd.core.ports import Transcripts
from agentd.core.search import SearchQuery
from agentd.core.transcript import Row
from agentd.core.turn import MAIN, Kind, Origin, SessionKey
from agentd.core.workspace import FACTS_PATH, Reader
from agentd.engine.background import SideCall
from agentd.memory.facts.forgetting import Forgetting, ForgottenPlace
from agentd.storage.copies import Copies
from agentd.storage.masking import Masking, StoredTexts
from agentd.workspace.scrub import NoteEraser, VersionEraser

_EMPTY_JOURNAL = "journalctl --rotate --vacuum-time=1s"
_NEAREST = 10  # texts that are looked at for their meaning
_MAX_TOKENS = 2_048
_OWNER = Reader(MAIN, Kind.MAIN)


def build_forgetting(
    ground: Ground,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    calls: SideCall,
    output: OpenLog,
) -> Forgetting:
    """What erases words: first where they were written, then what was made of that."""
    versions = ground.places.versions
    notes = NoteEraser(
        memory.files,
        ground.workspace,
        versions,
        apart=frozenset({FACTS_PATH}),
        shipped=memory.template,
    )
    former = VersionEraser(memory.files, versions)
    stored = StoredTexts(stores.db)

    async def erase_index(_: Erasure) -> int:
        await memory.indexer.sync_notes()
        await memory.index.erase(())
        return 0

    async def erase_log(erasure: Erasure) -> int:
        return await asyncio.to_thread(output.erase, erasure)

    async def ask(system: str, text: str) -> str:
        return await calls.ask(MAIN, Origin.FORGETTING, system, text, max_tokens=_MAX_TOKENS)

    async def near(text: str) -> Sequence[tuple[str, int, int]]:
        found = await memory.recall.search(SearchQuery(text, limit=_NEAREST), _OWNER)
        chunks = (hit.chunk for hit in found.hits)
        return [(chunk.path, chunk.start_line, chunk.end_line) for chunk in chunks]

    return Forgetting(
        stores.erasures,
        (
            Masking(stores.db, memory.indexer.without),
            notes,
            former,
            graph.keeper,
            graph.sharing,
            ForgottenPlace("search index", erase_index),
            ForgottenPlace("log", erase_log),
            ForgottenPlace("chat history", stores.typed.erase_words),
        ),
        ground.clock,
        ask=ask,
        texts=(stored, notes, former, stores.typed),
        said=stored.said,
        copies=_copies(ground, stores, output).list,
        near=near,
    )


async def row_of(sessions: Transcripts, session: SessionKey, seq: int) -> Row | None:
    """A row of a transcript; None if it is gone. Raises StorageError."""
    if not await sessions.exists(session):
        return None
    rows = await sessions.rows(session, seq, 1)
    return rows[0] if rows and rows[0].seq == seq else None


def _copies(ground: Ground, stores: Stores, output: OpenLog) -> Copies:
    """Where copies of what agentd keeps may lie: its own folders, all of its home if it has one."""
    home = ground.environ.get("AGENTD_HOME")
    roots = (Path(home),) if home else (ground.places.state_dir, ground.workspace)
    databases = stores.db.path, stores.index_db.path
    places = ground.places
    erased = [ground.workspace, places.versions, places.state_dir / "logs", places.chat_history]
    erased.append(places.mirror)
    if output.file is not None:
        erased.append(output.file)
    return Copies(roots, databases, _EMPTY_JOURNAL if output.is_journal else "", erased)
