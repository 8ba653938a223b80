"""What each turn's prompt carries of the workspace.

    turn                              gets
    the owner's                       BOOTSTRAP while it has text, SOUL, AGENTS, TOOLS, IDENTITY, USER,
                                      MEMORY, HEARTBEAT, MEMORY of the other scopes; daily notes
    a group's, an isolated one        SOUL, AGENTS, TOOLS, IDENTITY
    a beat or job with the main       the owner's without BOOTSTRAP and HEARTBEAT (a beat's own words
        context                       carry that)
    one with light context            nothing
    a flush                           today's note, so that it need not be repeated
    a summary                         nothing

All blocks are stable, the most stable first, so that a provider's cache holds for as long as no file
changes. Files are looked at every turn and read when they have changed; the day is the owner's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import structlog

from agentd.core.health import Problem
from agentd.core.prompt import ContextBlock, Rank
from agentd.core.turn import MAIN, Context, Kind, Origin, TurnRequest
from agentd.core.workspace import FileView, Reader
from agentd.workspace import compose
from agentd.workspace.compose import Cut, Room, Section
from agentd.workspace.files import Files
from agentd.workspace.visibility import IN_EVERY_PROMPT
from agentd.workspace.workspace_settings import USUAL_ORDER, WorkspaceSettings

log = structlog.get_logger()

_BOOTSTRAP = "BOOTSTRAP.md"
_HEARTBEAT = "HEARTBEAT.md"
_MEMORY = "MEMORY.md"
_MEANING: Mapping[str, str] = {
    _BOOTSTRAP: "First-Run Bootstrap",
    "AGENTS.md": "Agent Instructions",
    "SOUL.md": "Core Values",
    "USER.md": "User Context",
    "IDENTITY.md": "Identity",
    "TOOLS.md": "Tool Notes",
    _MEMORY: "Long-Term Memory",
    _HEARTBEAT: "Heartbeat Checklist",
}
CUT = "file_cut"  # the code of the problem of a file that did not fit


class Injection:
    """Workspace files as context blocks."""

    def __init__(self, files: Files, settings: WorkspaceSettings) -> None:
        self._files = files
        self._settings = settings
        self._cut_notes: set[str] = set()

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """The turn's project context, daily notes and list of missing files, where there are any."""
        if not self._settings.enabled or request.context is Context.LIGHT:
            return ()
        reader = Reader(request.session, request.kind)
        room = Room(self._settings.max_file_chars, self._settings.max_total_chars)
        match request.origin:
            case Origin.SUMMARY | Origin.EXTRACTION | Origin.FORGETTING | Origin.EMBEDDING:
                return ()
            case Origin.FLUSH:
                found, _ = await self._files.snapshot(self._note_paths(reader, 0), reader)
                daily, _ = self._daily(found.values(), reader, room)
                return _blocks((Rank.DAILY_NOTES, daily))
            case Origin.USER | Origin.HEARTBEAT | Origin.JOB:
                return await self._full(request.origin, reader, room)

    async def audit(self, kind: Kind) -> tuple[tuple[str, bool], ...]:
        """The files that such a session needs, each with whether it is there: for the start and
        after a compaction. Files whose switch is off are not needed.
        """
        reader = Reader(MAIN, kind)
        wanted = self._wanted(kind)
        _, missing = await self._files.snapshot(wanted, reader)
        found = [(name, name not in missing) for name in wanted]
        if absent := [name for name, exists in found if not exists]:
            log.warning("required_files_missing", kind=str(kind), files=absent)
        return tuple(found)

    async def _full(self, origin: Origin, reader: Reader, room: Room) -> tuple[ContextBlock, ...]:
        wanted = self._wanted(reader.kind)
        if origin is not Origin.USER:
            wanted = [name for name in wanted if name != _HEARTBEAT]
        elif reader.kind is Kind.MAIN:
            wanted = [_BOOTSTRAP, *wanted]
        foreign = self._foreign(reader.kind)
        notes = self._note_paths(reader, self._settings.daily_lookback_days)
        found, absent = await self._files.snapshot([*wanted, *foreign, *notes], reader)
        missing = [name for name in wanted if name in absent and name != _BOOTSTRAP]
        views = {path: found[path] for path in (*wanted, *foreign) if path in found}
        items = [Section(p, self._heading(p), views[p].text) for p in wanted if p in views]
        items += [Section(p, f"## {p}", views[p].text, is_data=True) for p in foreign if p in views]
        texts, cuts, left = compose.sections(items, room)
        self._note(views, cuts, reader)
        project = compose.project_context(texts)
        daily, cut = self._daily([found[path] for path in notes if path in found], reader, left)
        if notes:
            for path in self._cut_notes - cut:  # its day has gone by
                self._files.complaints.clear(path, CUT)
            self._cut_notes = cut
        return _blocks(
            (Rank.FILES, project),
            (Rank.DAILY_NOTES, daily),
            (Rank.MISSING_FILES, compose.missing_files(missing)),
        )

    def _note_paths(self, reader: Reader, days_back: int) -> list[str]:
        """Where the daily notes of these days may be, for a reader who gets any."""
        if not self._settings.inject_daily or reader.kind is not Kind.MAIN:
            return []
        folders = (self._settings.daily_dir, *self._settings.daily_aliases)
        scopes = ("", *(f"@{name}/" for name in self._files.scopes))
        days = [f"{self._files.today() - timedelta(ago)}.md" for ago in range(days_back + 1)]
        return [f"{s}{folder}/{day}" for s in scopes for day in days for folder in folders]

    def _daily(self, found: Iterable[FileView], reader: Reader, room: Room) -> tuple[str, set[str]]:
        """The notes as one text, and those that had to be cut."""
        views = {view.path: view for view in found}  # an alias may lead to the same note
        items = [
            Section(path, f"### {path}", view.text, path.startswith("@"))
            for path, view in views.items()
        ]
        texts, cuts, _ = compose.sections(items, room)
        self._note(views, cuts, reader)
        return compose.daily_notes(texts), {c.path for c in cuts}

    def _wanted(self, kind: Kind) -> list[str]:
        s = self._settings
        switches = {
            "SOUL.md": s.inject_soul,
            "AGENTS.md": s.inject_agents,
            "TOOLS.md": s.inject_tools,
            "IDENTITY.md": s.inject_identity,
            "USER.md": s.inject_user,
            _MEMORY: s.inject_memory,
            _HEARTBEAT: s.inject_heartbeat,
        }
        order = dict.fromkeys((*s.order, *USUAL_ORDER[s.style]))
        return [n for n in order if switches[n] and (kind is Kind.MAIN or n in IN_EVERY_PROMPT)]

    def _foreign(self, kind: Kind) -> list[str]:
        if kind is not Kind.MAIN or not self._settings.inject_memory:
            return []
        return [f"@{scope}/{_MEMORY}" for scope in self._files.scopes]

    def _heading(self, name: str) -> str:
        return f"## {name if self._settings.style == 'filename' else _MEANING[name]}"

    def _note(self, views: Mapping[str, FileView], cuts: Iterable[Cut], reader: Reader) -> None:
        """Whole files count as seen; cut ones are a problem until they fit again."""
        cut = {c.path: c for c in cuts}
        for path, view in views.items():
            if path not in cut:
                self._files.mark_seen(view, reader)
                self._files.complaints.clear(path, CUT)
        for path, c in cut.items():
            text = f"only {c.kept:,} of {c.total:,} characters of {path} fit into the prompt"
            cure = "shorten it, or raise [workspace] max_file_chars or max_total_chars"
            self._files.complaints.add(path, Problem(CUT, text, cure))


def _blocks(*ranked: tuple[Rank, str]) -> tuple[ContextBlock, ...]:
    return tuple(ContextBlock(text, stable=True, rank=rank) for rank, text in ranked if text)
