"""Importing the notes and conversations of another agent, with a step for each that says what was
done, and listing its settings that agentd has a key for.

A note that prompts would carry is checked first: text that reads like orders to the model is
imported only after the user has seen it and said yes.

OpenClaw keeps conversations, since its version 2026.8.1, in `openclaw-agent.sqlite` in the folder
`agents/NAME/agent`. The database is opened read-only. Its table `transcript_events` has a row for
each line of the former JSONL: as text in `event_json`, or, from schema 23 on, perhaps compressed in
`event_zstd` (docs.openclaw.ai/reference/session-management-compaction/store).
"""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from msgspec import Struct

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

# Pairs of OpenClaw's key and agentd's, where both mean the same; for others see docs/migrating.md.
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
# An unclosed string or comment matches up to the end of the text. If it did not match, each of its
# possible beginnings would be scanned to the end: quadratic time.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NAME = re.compile(rf"({_STRING})|(?<![\w$])([A-Za-z_$][\w$]*+)(?=\s*+:)", re.DOTALL)


def openclaw_settings(text: str) -> list[dict[str, Any]]:
    """Return the settings in an openclaw.json that agentd has a key for, each as `{theirs, ours,
    value}`. Raises ValueError if the text cannot be parsed.
    """
    return _beside(_loads_relaxed(text), OPENCLAW_KEYS)


def rustyclaw_settings(text: str) -> list[dict[str, Any]]:
    """Return the same for the text of a RustyClaw config.toml."""
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
    """Return the value as agentd writes it: a model without its service (`anthropic/NAME`), a
    number of minutes as a duration.
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
    """Parse JSON that may have comments, unquoted keys and trailing commas, as OpenClaw does.
    Raises ValueError.
    """
    try:
        return json.loads(text)
    except ValueError:
        plain = _COMMENT.sub(lambda m: m[1] or " ", text)
        plain = _NAME.sub(lambda m: m[1] or f'"{m[2]}"', plain)
        return json.loads(_COMMA.sub(lambda m: m[1] or "", plain))


Step = dict[str, Any]
Permit = Callable[[str, str, Sequence[Step]], bool]  # (path, text, suspicious passages)

_MOST_BYTES = MAX_FRAME_BYTES // 4  # a character may take several bytes on the wire
_TRANSCRIPTS = {
    "openclaw": ("agents/*/sessions/*.jsonl", "sessions/*.jsonl"),
    "rustyclaw": ("sessions/*.jsonl", "workspace/sessions/*.jsonl"),
}
_SETTINGS = {
    "openclaw": ("openclaw.json", openclaw_settings),
    "rustyclaw": ("config.toml", rustyclaw_settings),
}
_FIRST_MEETING = "BOOTSTRAP.md"
# Notes that say what the agent is and does: whoever wrote one of them commands the agent.
_INSTRUCTIONS = frozenset({"agents.md", "heartbeat.md", "identity.md", "soul.md", "tools.md"})
NOT_ASKED = "it tells the agent what to do, and nobody was asked"
FACTS_NOT_ASKED = "its lines would be facts about you, and nobody was asked"

_WAIT = 5.0  # seconds for a lock that OpenClaw holds while it writes


class AgentFolder(Struct, frozen=True):
    """The folder of another agent, and the workspace in it."""

    agent: str
    root: Path
    workspace: Path

    @classmethod
    def of(cls, agent: str, root: Path) -> Self:
        """Return the house at `root`, which is the agent's folder or only its workspace. Raises
        InvalidRequest if nothing of the agent is there.
        """
        workspace = root / "workspace" if (root / "workspace").is_dir() else root
        house = cls(agent, root, workspace)
        kept = house.notes() or house.transcripts() or house.databases()
        if not (kept or (root / _SETTINGS[agent][0]).is_file()):
            raise InvalidRequest(
                f"{root} holds nothing of {agent}", cure=f"give the folder of {agent} itself"
            )
        return house

    def notes(self) -> list[Path]:
        """Return the Markdown files at the top of the workspace and below `memory/`, without links
        and without BOOTSTRAP.md: agent and user have already met.
        """
        found = (*self.workspace.glob("*.md"), *self.workspace.glob("memory/**/*.md"))
        plain = [path for path in found if self._holds(path) and path.name != _FIRST_MEETING]
        return sorted(plain)

    def transcripts(self) -> list[Path]:
        """Return the transcripts that are JSONL files."""
        patterns = _TRANSCRIPTS[self.agent]
        found = {path for pattern in patterns for path in self.root.glob(pattern)}
        return sorted(path for path in found if self._holds(path))

    def databases(self) -> list[Path]:
        """Return the databases in which newer versions of OpenClaw keep conversations."""
        found = self.root.glob("agents/**/openclaw-agent.sqlite")
        return sorted(path for path in found if self._holds(path))

    def _holds(self, path: Path) -> bool:
        """Return whether the path is a regular file, no link, inside the agent's folder: a folder
        on the path may be a link that leads out.
        """
        is_plain = path.is_file() and not path.is_symlink()
        return is_plain and path.resolve().is_relative_to(self.root.resolve())

    def settings(self) -> list[dict[str, Any]]:
        """Return the agent's settings that agentd has a key for, each as `{theirs, ours, value}`.
        Raises InvalidRequest if the file cannot be parsed.
        """
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
    house: AgentFolder,
    sockets: Sequence[Path],
    within: float,
    permit: Permit | None,
    *,
    dry_run: bool,
) -> dict[str, list[Step]]:
    """Import the notes and conversations that agentd does not have yet. Return a step for each, in
    `files` and `sessions`, whose `action` is `imported`, `kept` or `refused`, with a `reason`; and
    in `config` the settings.

    A note that exists in agentd's workspace is kept, unless it is still the shipped template.
    `permit` decides about a note that instructs the agent, lists facts or has suspicious passages;
    with None such notes are refused. A step's `warnings` are the suspicious passages. Raises
    DaemonUnreachable, InvalidRequest, RemoteError.
    """
    config = house.settings()
    async with connect(sockets) as connection:
        files = [
            await _note(connection, house, path, permit, dry_run=dry_run) for path in house.notes()
        ]
        bringing = ConversationImport(
            connection, await existing(connection), within, is_dry=dry_run
        )
        sessions = [await bringing.file(path, f"chat:{path.stem}") for path in house.transcripts()]
        for path in house.databases():
            name = path.relative_to(house.root).as_posix()
            sessions += [step async for step in bringing.database(path, name)]
    return {"files": files, "sessions": sessions, "config": config}


async def _note(
    connection: DaemonConnection,
    house: AgentFolder,
    path: Path,
    permit: Permit | None,
    *,
    dry_run: bool,
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
    """Write a note, or only check it with `dry_run`; return its suspicious passages. Raises
    RemoteError.
    """
    params = {"content": text, "target": path, "append": False, "dry_run": dry_run}
    done = await connection.call("_agentd/memory/write", params)
    warnings: Sequence[Step] = done["warnings"]
    return warnings


def _as_text(found: Sequence[Step]) -> str:
    first, *others = found
    more = f", and {len(others)} more" if others else ""
    return f"line {first['line']} {first['reason']}{more}"


def _read(path: Path) -> str:
    """Return the file's text with its line ends as they are. Raises InvalidRequest."""
    try:
        return read_regular(path, _MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest("not UTF-8") from error


async def _text(connection: DaemonConnection, path: str) -> str | None:
    """Return the note's text in agentd's workspace; None if there is none. Raises RemoteError."""
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


class ConversationImport:
    """Imports conversations, each completely or not at all. One whose session exists is skipped."""

    def __init__(
        self, connection: DaemonConnection, taken: frozenset[str], within: float, *, is_dry: bool
    ) -> None:
        """`taken` are the keys of sessions that have messages. `within` is the time limit of a
        call, in seconds. With `is_dry` nothing is sent.
        """
        self._connection = connection
        self._taken = set(taken)
        self._within = within
        self._is_dry = is_dry

    async def file(self, path: Path, key: str) -> Step:
        """Import a JSONL file as the session `key`; return the step."""
        if key in self._taken:
            return _kept_step(key)
        try:
            [transcript] = read_files([path], key)
        except AgentdError as error:
            return _session(key, 0, "refused", error.message)
        return await self._bring(transcript)

    async def database(self, path: Path, name: str) -> AsyncIterator[Step]:
        """Import the conversations of an OpenClaw database and yield a step for each. If the
        database cannot be read, the step names it `name`.
        """
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
    """Yield the conversations of an OpenClaw database, each as the session `chat:ID`. Raises
    InvalidRequest if the database cannot be read or a conversation is too large.
    """
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as conn:
            if not _columns(conn):
                return  # no such table: this version kept conversations in files
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
