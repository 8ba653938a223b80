"""The part of the table that is about what is known of the owner, and how it is forgotten."""

from __future__ import annotations

from tests.e2e.contract import Row
from tests.e2e.contract_makers import (
    a_changed_fact,
    a_fact,
    a_file_of_facts,
    a_noted_word,
    number,
)
from tests.e2e.contract_shapes import (
    ERASED,
    FACT,
    FACT_HITS,
    FACTS,
    FORGOTTEN,
    LOOKED_AT,
    PARKED,
    PROPOSED,
)

_CROW = {"text": "The user's crow is called Kurt", "valid_from": "2026-11-01T09:00:00+00:00"}
FACT_ROWS = (
    Row("facts list", ("--all",), FACTS, "is shy", "facts/list", {"all": True}, given=a_fact),
    Row(
        "facts list",
        ("shy badger", "--category", "personal", "--limit", "2"),
        FACT_HITS,
        "is shy  (personal, explicit)",
        "facts/list",
        {"query": "shy badger", "category": "personal", "limit": 2},
        given=a_fact,
    ),
    Row(
        "facts add",
        ("my favourite lake is number {it}", "--category", "preference"),
        {"fact": FACT, "new": bool, "superseded": [FACT], "before": [FACT]},
        "remembered: The user's favourite lake is",
        "facts/add",
        {"text": "my favourite lake is number {it}", "category": "preference"},
        given=number,
    ),
    Row(
        "facts forget",
        ("{it}", "--yes"),
        FORGOTTEN,
        "forgotten",
        "facts/forget",
        {"query": "{it}"},
        given=a_fact,
    ),
    Row(
        "facts forget",
        ("the zeppelin over Ulm",),
        FORGOTTEN,
        "`agentd memory forget` erases any other text",
        "facts/forget",
        {"query": "the zeppelin over Ulm"},
        code=1,
    ),
    Row(
        "facts history",
        ("{it}",),
        {"facts": [FACT]},
        " – now  The user's favourite sea",
        "facts/history",
        {"fact": "{it}"},
        given=a_changed_fact,
    ),
    Row("facts parked", (), PARKED, "no line is missing", "facts/parked"),
    Row("facts validate", ("--dry-run",), LOOKED_AT, "", "facts/validate", {"dry_run": True}),
    Row("facts export", (), FACT, '"status": "active"', given=a_fact, lines=True),
    Row(
        "facts import",
        ("{it}",),
        {"added": int, "known": int, "refused": {str: int}},
        "added",
        "facts/import",
        {"facts": [_CROW]},
        given=a_file_of_facts,
    ),
    Row(
        "memory forget",
        ("{it}", "--yes"),
        ERASED,
        "forgotten, with",
        "memory/forget",
        {"text": "{it}"},
        given=a_noted_word,
        apart=True,  # one erasure takes out what another at the same time was to find
    ),
    Row("memory proposals", (), PROPOSED, "", "memory/proposals"),
)
