"""Shapes of what commands and methods answer: the keys that stay, and what stands under them."""

from __future__ import annotations

import re

import agentd
from agentd.core.beat import Reason
from agentd.core.fact import Category, ChangeKind, FactSource, FactStatus, Refusal
from agentd.core.job import JobReason
from agentd.core.search import EmptyReason, SearchShortfall

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d")
KEY = re.compile(r"main|(?:chat|group|isolated):.+")
DIGEST = re.compile(r"[0-9a-f]{64}")
WHEN = (TIME, None)
LEVELS = frozenset({"debug", "info", "warning", "error", "critical"})

SESSION = {
    "key": KEY,
    "kind": frozenset({"main", "group", "isolated"}),
    "title": str,
    "cwd": str,
    "created_at": TIME,
    "updated_at": TIME,
    "busy": bool,
    **dict.fromkeys(("rows", "turns", "context_tokens", "generation", "queued"), int),
}
SHOWN = {
    **SESSION,
    "summary": str,
    "context_from": int,
    "covered_to": int,
    "flush_due": bool,
    "flush_failures": int,
    "cost": {"tokens": int, "usd": float},
}
ROOM = {
    "flushed": bool,
    "compacted": bool,
    "reason": str,
    "tokens_before": int,
    "tokens_after": int,
    "unsaved": int,
    "unsaved_reason": str,
}
PLAN = {
    "session": KEY,
    "tokens": int,
    "window": int,
    "flush_at": int,
    "compact_at": int,
    "would_flush": bool,
    "would_compact": bool,
    "reason": str,
}
INDEX = {
    "files": int,
    "chunks": int,
    "pending": int,
    "vectors_missing": int,
    "reason": str,
    "embedder": str,
    "state": frozenset({"ready", "indexing", "rebuilding", "embedding"}),
}
EMBEDDER = {"provider": str, "why": str}
PROBLEM = {"code": str, "text": str, "cure": str}
BEAT = {
    "outcome": frozenset({"quiet", "alert", "skipped", "failed"}),
    "reason": frozenset(Reason),
    "text": str,
    "tokens": int,
    "cost_usd": float,
    "at": TIME,
    "due": WHEN,
    "id": int,
}
JOB_RUN = {
    "outcome": frozenset({"quiet", "alert", "skipped", "failed", "missed"}),
    "reason": frozenset(JobReason),
    "text": str,
    "tokens": int,
    "cost_usd": float,
    "at": TIME,
    "due": WHEN,
    "job": int,
}
JOB = {
    "id": int,
    "text": str,
    "kind": frozenset({"remind", "ask"}),
    "enabled": bool,
    "schedule": ({"at": TIME}, {"every": str}, {"cron": str, "zone": str}),
    "session": frozenset({"main", "isolated"}),
    "misfire": frozenset({"skip", "once", "all"}),
    "model": (str, None),
    "created_by": frozenset({"owner", "model"}),
    "next_due": WHEN,
    "runs": int,
}
LISTED_JOB = {**JOB, "next": [TIME]}
ADDED_JOB = {**LISTED_JOB, "times_in": str}
HEARTBEAT_JOB = {
    "id": frozenset({"heartbeat"}),
    "kind": frozenset({"system"}),
    "text": str,
    "schedule": {"every": str},
    "enabled": bool,
    "next_due": WHEN,
    "next": [TIME],
    "last": ({**BEAT, "job": frozenset({"heartbeat"})}, None),
}
CONSOLIDATION = {
    "outcome": frozenset({"quiet"}),
    "reason": frozenset({"consolidated"}),
    "text": str,
    "tokens": int,
    "cost_usd": float,
    "at": TIME,
    "due": None,
    "job": frozenset({"graph"}),
    "promoted": int,
    "swept": int,
}
GRAPH_JOB = {**HEARTBEAT_JOB, "id": frozenset({"graph"}), "last": (CONSOLIDATION, None)}
ALERT = {
    "id": int,
    "at": TIME,
    "text": str,
    "origin": str,
    "acked": bool,
    "delivered": {str: frozenset({"sent", "pending", "failed", "withdrawn"})},
    "severity": frozenset({"info", "warning", "urgent"}),
    "deliveries": [{"sink": str, "state": str, "tries": int, "next_try": WHEN, "error": str}],
}
SINK = {
    "sink": str,
    "severity": frozenset({"info", "warning", "urgent"}),
    **dict.fromkeys(("quiet_hours", "digest", "error"), str),
    **dict.fromkeys(("waiting", "failed"), int),
    **dict.fromkeys(("next_try", "sent_at"), WHEN),
}
STATUS = {
    "version": re.compile(re.escape(agentd.__version__)),
    "pid": int,
    "uptime_s": float,
    "provider": {"kind": str, "model": str, "why": str, "effective_window": int},
    "sessions": [SESSION],
    "heartbeat": {"enabled": bool, "next_due": WHEN, "last": (BEAT, None)},
    "compaction": {"last": ({"at": TIME}, None)},
    "index": {**INDEX, **EMBEDDER},
    "facts": {
        "active": int,
        "proposed": int,
        "refused": {str: int},
        "waiting": int,
        "merged": int,
        "erasing": [str],
        "erased": (str, None),
    },
    "cost": {"today_usd": float, "month_usd": float},
    "alerts": [SINK],
    "graph": {
        "enabled": bool,
        **dict.fromkeys(("concepts", "facts", "episodes"), int),
        "consolidated": ({"at": TIME, "promoted": int, "swept": int}, None),
    },
    "problems": [PROBLEM],
}
COST = {
    "at": TIME,
    "session": str,
    "origin": str,
    "model": str,
    "cost_usd": float,
    "input_tokens": int,
    "output_tokens": int,
}
CHECK = {"code": str, "level": frozenset({"ok", "warn", "fail"}), "text": str, "cure": str}
HIT = {
    "path": str,
    "start_line": int,
    "end_line": int,
    "text": str,
    "score": float,
    "source": frozenset({"notes", "sessions"}),
    "date": (str, None),
    "scores": {str: float},
    "newer": str,
}
FOUND = {"results": [HIT], "reason": frozenset({"", *EmptyReason, *SearchShortfall})}
FILE = {
    "path": str,
    "text": str,
    "from": int,
    "lines": int,
    "total_lines": int,
    "next": (int, None),
    "digest": str,
}
WRITTEN = {"path": str, "bytes": int, "digest": DIGEST, "text": str, "warnings": list}
HISTORY = {
    "path": str,
    "digest": DIGEST,
    "changed_by_hand": bool,
    "versions": [
        {
            "version": int,
            "at": str,
            "by": str,
            "session": str,
            "call": str,
            "tainted": bool,
            "approved": bool,
            "digest": str,
            "size": int,
            "current": bool,
        }
    ],
}
TURN = {
    "session": KEY,
    "message_id": str,
    "text": str,
    "usage": {str: int},
    "stop_reason": frozenset({"end_turn", "max_tokens", "refusal", "cancelled"}),
    "tool_calls": [{"name": str}],
}
MESSAGE = {
    "role": frozenset({"user", "assistant", "summary", "notice"}),
    "content": [{"type": str}],
    "at": TIME,
    "seq": int,
}
RECORD = {"at": TIME, "level": LEVELS, "event": str}
MOVED = {
    "files": [
        {"path": str, "action": frozenset({"imported", "kept", "refused"}), "reason": str},
    ],
    "sessions": [{"key": KEY, "action": str}],
    "config": [{"ours": str}],
    "dry_run": bool,
}
FACT = {
    "id": str,
    "text": (str, None),
    "status": frozenset(FactStatus),
    "category": frozenset(Category),
    "confidence": float,
    "source": frozenset(FactSource),
    "valid_from": TIME,
    "valid_to": WHEN,
    "noted_at": TIME,
    "superseded_by": (str, None),
    "session": (KEY, None),
    "seq": (int, None),
    "triple": ([str], None),
}
FACTS = {"facts": [FACT], "total": int}
FACT_HITS = {"facts": [{**FACT, "score": float, "scores": {str: float}}], "total": int}
ALSO = {"n": int, "where": str, "text": str, "others": [str]}
ERASED = {
    "places": {str: int},
    "also": [ALSO],
    "backups": [str],
    "pending": [str],
    "more": int,
    "besides": [str],
}
FORGOTTEN = {"forgotten": [str], "candidates": [FACT], **ERASED}
REFUSED = {"reason": frozenset(Refusal), "text": str}
ADDED = {
    "fact": (FACT, None),
    "new": bool,
    "superseded": [FACT],
    "before": [FACT],
    "refused": [REFUSED],
}
CHANGE = {
    "id": int,
    "at": TIME,
    "session": (KEY, None),
    "op": frozenset(ChangeKind),
    "new": (str, None),
    "old": [str],
    "undone": bool,
}
UNDONE = {"change": CHANGE, "removed": [FACT], "restored": [FACT]}
MERGED = {"change": CHANGE, "fact": FACT, "superseded": [FACT]}
PENDING = {"facts": [{**FACT, "replaces": [FACT]}]}
ACCEPTED = {"facts": [FACT], "superseded": [FACT], "refused": [REFUSED]}
PARKED = {"facts": [FACT], "done": frozenset({"", "forgotten", "restored"})}
LOOKED_AT = {
    "checked": int,
    "duplicates": [{"id": str, "of": str}],
    "conflicts": [{"id": str, "by": str}],
    "triples": [str],
    "stale": [str],
    "evicted": [str],
    "dry_run": bool,
}
PROPOSAL = {
    **dict.fromkeys(("id", "path", "text", "diff", "digest", "problem"), str),
    "evidence": {"times": int, "first": TIME, "last": TIME, "sessions": [str]},
    "replaces": (str, None),
    "warnings": list,
}
PROPOSED = {
    "proposals": [PROPOSAL],
    "done": frozenset({"", "accepted", "rejected", "changed", "too_long"}),
}
UNIT = {"files": [str], "todo": [str]}
COMMAND_ERROR = {"error": {"code": str, "message": re.compile("(?s).+"), "cure": str}}
METHOD_ERROR = {"code": int, "message": re.compile("(?s).+"), "data": {"code": str, "cure": str}}
