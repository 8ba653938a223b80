"""What another agent has kept, and bringing it in: a step for each file, told whether taken or not, and the
settings that mean the same as ones of agentd.

A file that prompts would carry is looked through first: what is written like orders to the model comes
in only after the user has seen it and said yes.

Since its version 2026.8.1 an OpenClaw agent keeps conversations in `agents/NAME/agent/openclaw-agent.sqlite`,
which is read and never written: in `transcript_events` a row for each line of the former JSONL, as text in
`event_json`, or from schema 23 on perhaps compressed in `event_zstd`
(docs.openclaw.ai/reference/session-management-compaction/store).
"""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from agentd.app.cli.transcripts import (
    MOST_BYTES,
    BroughtTranscript,
    Line,
    check_messages,
    existing,
    read_files,
    read_regular,
    send,
    some_of,
)
from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.paths import shipped_path
from agentd.core.workspace import FACTS_PATH
from agentd.interfaces.client.connection import MAX_FRAME_BYTES, DaemonConnection, connect
from agentd.interfaces.client.remote_error import RemoteError

# Their key, ours. Only what means the same is here; docs/migrating.md tells the rest.
OPENCLAW_KEYS = (
    ("agents.defaults.model.primary", "provider.model"),
    ("agents.defaults.contextTokens", "provider.context_window"),
    ("agents.defaults.userTimezone", "agent.timezone"),
    ("session.reset.idleMinutes", "agent.idle_reset"),
    ("agents.defaults.maxConcurrent", "agent.max_concurrent_turns"),
    ("agents.defaults.compaction.reserveTokensFloor", "compaction.reserve_tokens"),
    ("agents.defaults.compaction.memoryFlush.enabled", "compaction.memory_flush.enabled"),
    (
        "agents.defaults.compaction.memoryFlush.softThresholdTokens",
        "compaction.memory_flush.soft_threshold_tokens",
    ),
    (
        "agents.defaults.compaction.memoryFlush.systemPrompt",
        "compaction.memory_flush.system_prompt",
    ),
    ("agents.defaults.compaction.memoryFlush.prompt", "compaction.memory_flush.user_prompt"),
    ("agents.defaults.heartbeat.every", "heartbeat.interval"),
    ("agents.defaults.heartbeat.model", "heartbeat.model"),
    ("agents.defaults.heartbeat.prompt", "heartbeat.prompt"),
    ("agents.defaults.heartbeat.ackMaxChars", "heartbeat.ack_max_chars"),
    ("agents.defaults.heartbeat.includeReasoning", "heartbeat.include_reasoning"),
    ("agents.defaults.heartbeat.activeHours.start", "heartbeat.active_hours_start"),
    ("agents.defaults.heartbeat.activeHours.end", "heartbeat.active_hours_end"),
    ("agents.defaults.heartbeat.activeHours.timezone", "heartbeat.timezone"),
)
_SAME = (
    "heartbeat.enabled",
    "heartbeat.interval",
    "heartbeat.prompt",
    "heartbeat.active_hours_start",
    "heartbeat.active_hours_end",
    "workspace.inject_soul",
    "workspace.inject_memory",
    "workspace.inject_daily",
    "workspace.inject_agents",
    "workspace.inject_tools",
)
_FLUSH = ("enabled", "soft_threshold_tokens", "system_prompt", "user_prompt")
_INJECTED = ("soul", "memory", "daily", "agents", "tools", "identity", "user", "heartbeat")
RUSTYCLAW_KEYS = (
    ("model.provider", "provider.kind"),
    ("model.model", "provider.model"),
    ("model.base_url", "provider.base_url"),
    *((f"memory_flush.{key}", f"compaction.memory_flush.{key}") for key in _FLUSH),
    *((f"compaction.memory_flush.{key}", f"compaction.memory_flush.{key}") for key in _FLUSH),
    *((f"workspace_context.inject_{n}", f"workspace.inject_{n}") for n in _INJECTED),
    *((key, key) for key in _SAME),
)
_KINDS = frozenset({"anthropic", "openai"})
# What is not closed goes on to the end: else each beginning would be read to there in vain.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NAME = re.compile(rf"({_STRING})|(?<![\w$])([A-Za-z_$][\w$]*+)(?=\s*+:)", re.DOTALL)


def openclaw_settings(text: str) -> list[dict[str, Any]]:
    """What an openclaw.json says that agentd has a key for: `{theirs, value, ours}`. Raises ValueError
    for a file that cannot be read.
    """
    return _beside(_loads_relaxed(text), OPENCLAW_KEYS)


def rustyclaw_settings(text: str) -> list[dict[str, Any]]:
    """The same of a RustyClaw config.toml."""
    return _beside(tomllib.loads(text), RUSTYCLAW_KEYS)


def _beside(settings: Any, keys: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    found = ((theirs, _at(settings, theirs), ours) for theirs, ours in keys)
    return [
        {"theirs": theirs, "ours": ours, "value": _as_ours(ours, value)}
        for theirs, value, ours in found
        if isinstance(value, str | int | float) and _fits(ours, value)
    ]


def _fits(ours: str, value: object) -> bool:
    return ours != "provider.kind" or value in _KINDS


def _as_ours(ours: str, value: Any) -> Any:
    """Their models are written with the service before them, as in `anthropic/NAME`, their minutes as
    numbers.
    """
    if ours == "provider.model" and isinstance(value, str):
        return value.split("/", 1)[-1]
    if ours == "agent.idle_reset":
        return f"{value}m"
    return value


def _at(settings: Any, path: str) -> Any:
    for name in path.split("."):
        settings = settings.get(name) if isinstance(settings, dict) else None
    return settings


def _loads_relaxed(text: str) -> Any:
    """JSON that may have comments, bare names and commas at the end, as OpenClaw reads it."""
    try:
        return json.loads(text)
    except ValueError:
        plain = _COMMENT.sub(lambda m: m[1] or " ", text)
        plain = _NAME.sub(lambda m: m[1] or f'"{m[2]}"', plain)
        return json.loads(_COMMA.sub(lambda m: m[1] or "", plain))


Step = dict[str, Any]
Permit = Callable[[str, str, Sequence[Step]], bool]  # a file's path, its text, what is suspicious

_MOST_BYTES = MAX_FRAME_BYTES // 4  # a letter may take several bytes on the wire
_TRANSCRIPTS = {
    "openclaw": ("agents/*/sessions/*.jsonl", "sessions/*.jsonl"),
    "rustyclaw": ("sessions/*.jsonl", "workspace/sessions/*.jsonl"),
}
_SETTINGS = {
    "openclaw": ("openclaw.json", openclaw_settings),
    "rustyclaw": ("config.toml", rustyclaw_settings),
}
_FIRST_MEETING = "BOOTSTRAP.md"
# They say what the agent is and does, so whoever wrote them commands it from then on.
_INSTRUCTIONS = frozenset({"agents.md", "heartbeat.md", "identity.md", "soul.md", "tools.md"})
NOT_ASKED = "it tells the agent what to do, and nobody was asked"
FACTS_NOT_ASKED = "its lines would be facts about you, and nobody was asked"

_WAIT = 5.0  # seconds for OpenClaw, if it runs and writes


@dataclass(frozen=True, slots=True)
class House:
    """Where another agent lives."""

    agent: str
    root: Path
    workspace: Path

    @classmethod
    def of(cls, agent: str, root: Path) -> Self:
        """The agent's folder, or its workspace alone. Raises InvalidRequest for any other folder."""
        workspace = root / "workspace" if (root / "workspace").is_dir() else root
        house = cls(agent, root, workspace)
        kept = house.notes() or house.transcripts() or house.databases()
        if not (kept or (root / _SETTINGS[agent][0]).is_file()):
            raise InvalidRequest(
                f"{root} holds nothing of {agent}", cure=f"give the folder of {agent} itself"
            )
        return house

    def notes(self) -> list[Path]:
        """Its markdown: at the top of the workspace and below `memory/`, links left out. The script of
        a first meeting is for those who have not met.
        """
        found = (*self.workspace.glob("*.md"), *self.workspace.glob("memory/**/*.md"))
        plain = [path for path in found if self._holds(path) and path.name != _FIRST_MEETING]
        return sorted(plain)

    def transcripts(self) -> list[Path]:
        """Its conversations."""
        patterns = _TRANSCRIPTS[self.agent]
        found = {path for pattern in patterns for path in self.root.glob(pattern)}
        return sorted(path for path in found if self._holds(path))

    def databases(self) -> list[Path]:
        """Where newer versions of OpenClaw keep their conversations."""
        found = self.root.glob("agents/**/openclaw-agent.sqlite")
        return sorted(path for path in found if self._holds(path))

    def _holds(self, path: Path) -> bool:
        """Whether it is a file of the agent's own: a folder of it may be a link to anywhere."""
        is_plain = path.is_file() and not path.is_symlink()
        return is_plain and path.resolve().is_relative_to(self.root.resolve())

    def settings(self) -> list[dict[str, Any]]:
        """Its settings that agentd has a key for. Raises InvalidRequest."""
        name, read = _SETTINGS[self.agent]
        file = self.root / name
        if not self._holds(file):
            return []
        data = read_regular(file, _MOST_BYTES)
        try:
            return read(data.decode())
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(
                f"{file} cannot be read", cure="move it away to import the rest"
            ) from error


async def move(
    house: House, sockets: Sequence[Path], within: float, permit: Permit | None, *, dry_run: bool
) -> dict[str, list[Step]]:
    """Bring in what is not there yet; each step says `imported`, `kept` or `refused` and why.

    A file of the user's is kept; one that is as it was shipped counts as absent. `permit` is asked
    for each file that instructs the agent or has something suspicious in it, and None never gives it;
    what is suspicious stands in the step's `warnings`. Raises RemoteError.
    """
    config = house.settings()
    async with connect(sockets) as connection:
        files = [
            await _note(connection, house, path, permit, dry_run=dry_run) for path in house.notes()
        ]
        bringing = Bringing(connection, await existing(connection), within, is_dry=dry_run)
        sessions = [await bringing.file(path, f"chat:{path.stem}") for path in house.transcripts()]
        for path in house.databases():
            name = path.relative_to(house.root).as_posix()
            sessions += [step async for step in bringing.database(path, name)]
    return {"files": files, "sessions": sessions, "config": config}


async def _note(
    connection: DaemonConnection, house: House, path: Path, permit: Permit | None, *, dry_run: bool
) -> Step:
    target = path.relative_to(house.workspace).as_posix()
    try:
        text = _read(path)
        ours = await _text(connection, target)
        if ours == text:
            return _step(target, "kept", "the same already")
        if ours is not None and ours != _template(target):
            return _step(target, "kept", "yours is another one")
        found = await _write_note(connection, target, text, dry_run=True)
        if target.casefold() == FACTS_PATH:
            unasked = FACTS_NOT_ASKED
        else:
            unasked = NOT_ASKED if target.casefold() in _INSTRUCTIONS else ""
        if (found or unasked) and not (permit and permit(target, text, found)):
            reason = _as_text(found) if found else unasked
            return {**_step(target, "refused", reason), **({"warnings": found} if found else {})}
        if not dry_run:
            await _write_note(connection, target, text, dry_run=False)
    except (InvalidRequest, RemoteError) as error:
        return _step(target, "refused", error.message)
    step = _step(target, "imported", "" if ours is None else "in place of the template")
    return {**step, "warnings": found} if found else step


async def _write_note(
    connection: DaemonConnection, path: str, text: str, *, dry_run: bool
) -> Sequence[Step]:
    """Write the file, or only try to; returns what is suspicious in it. Raises RemoteError."""
    params = {"content": text, "target": path, "append": False, "dry_run": dry_run}
    done = await connection.call("_agentd/memory/write", params)
    warnings: Sequence[Step] = done["warnings"]
    return warnings


def _as_text(found: Sequence[Step]) -> str:
    first, *others = found
    more = f", and {len(others)} more" if others else ""
    return f"line {first['line']} {first['reason']}{more}"


def _read(path: Path) -> str:
    """The file's text, every byte of it. Raises InvalidRequest."""
    try:
        return read_regular(path, _MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest("not UTF-8") from error


async def _text(connection: DaemonConnection, path: str) -> str | None:
    """The file of that name in our workspace; None if there is none. Raises RemoteError."""
    try:
        page = await connection.call("_agentd/memory/read", {"path": path})
    except RemoteError as error:
        if error.reason == "file_missing":
            return None
        raise
    return str(page["text"])


def _template(path: str) -> str | None:
    file = shipped_path("workspace_template") / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


class Bringing:
    """Brings conversations in, each whole or not at all, and none twice."""

    def __init__(
        self, connection: DaemonConnection, taken: frozenset[str], within: float, *, is_dry: bool
    ) -> None:
        """`taken` are the sessions that have messages; a call waits `within` seconds; with `is_dry`
        nothing is sent.
        """
        self._connection = connection
        self._taken = set(taken)
        self._within = within
        self._is_dry = is_dry

    async def file(self, path: Path, key: str) -> Step:
        """A file of lines, as the session `key`."""
        if key in self._taken:
            return _kept_step(key)
        try:
            [transcript] = read_files([path], key)
        except AgentdError as error:
            return _session(key, 0, "refused", error.message)
        return await self._bring(transcript)

    async def database(self, path: Path, name: str) -> AsyncIterator[Step]:
        """The conversations of OpenClaw's database, which is called `name` where it cannot be read."""
        try:
            for transcript in read_database(path):
                yield await self._bring(transcript)
        except InvalidRequest as error:
            yield _session(name, 0, "refused", f"{error.message}; {error.cure}")

    async def _bring(self, transcript: BroughtTranscript) -> Step:
        key, rows = transcript.key, len(transcript.lines)
        if key in self._taken:
            return _kept_step(key)
        faults = "; ".join(transcript.faults)
        if not rows:
            return _session(key, 0, "refused", faults or "it holds no messages")
        try:
            if not self._is_dry:
                rows = (await send(self._connection, transcript, self._within))["rows"]
        except AgentdError as error:
            return _session(key, 0, "refused", error.message)
        self._taken.add(key)
        return _session(key, rows, "imported", f"left out: {faults}" if faults else "")


def _kept_step(key: str) -> Step:
    return _session(key, 0, "kept", "there is such a session already")


def _step(path: str, action: str, reason: str) -> Step:
    return {"path": path, "action": action, "reason": reason}


def _session(key: str, rows: int, action: str, reason: str) -> Step:
    return {"key": key, "rows": rows, "action": action, "reason": reason}


def read_database(path: Path) -> Iterator[BroughtTranscript]:
    """The conversations of a database, each as `chat:` and its id; none where it holds none. Raises
    InvalidRequest for one that cannot be read.
    """
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as conn:
            if not _columns(conn):
                return  # of a version that kept conversations as files
            query = "SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id"
            for (session,) in conn.execute(query).fetchall():
                yield _transcript(conn, path, str(session))
    except sqlite3.Error as error:
        raise InvalidRequest(
            f"{path} cannot be read as a database of OpenClaw: {error}",
            cure="stop OpenClaw and try again, or have it export its conversations",
        ) from error


def _columns(conn: sqlite3.Connection) -> set[str]:
    told = conn.execute("SELECT name FROM pragma_table_info('transcript_events')")
    return {str(name) for (name,) in told}


def _transcript(conn: sqlite3.Connection, path: Path, session: str) -> BroughtTranscript:
    lines: list[tuple[int, Line]] = []
    wrong: list[str] = []
    compressed = size = 0
    query = "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq"
    for number, (text,) in enumerate(conn.execute(query, (session,)), start=1):
        if text is None:
            compressed += 1
            continue
        size += len(text)
        if size > MOST_BYTES:
            raise InvalidRequest(
                f"{session} in {path} has more than {MOST_BYTES} bytes",
                cure="have OpenClaw shorten it",
            )
        try:
            event = json.loads(text)
        except (ValueError, RecursionError, TypeError):
            event = None
        if isinstance(event, dict):
            lines.append((number, event))
        else:
            wrong.append(f"line {number}: not a JSON object")
    taken, faults = check_messages(lines, wrong)
    if compressed:
        faults.append(f"{compressed} rows are compressed, which is not read")
    return BroughtTranscript(f"chat:{session}", path, taken, some_of(faults))
