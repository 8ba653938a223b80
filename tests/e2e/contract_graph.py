"""The part of the table that is about how what is known hangs together."""

from __future__ import annotations

import re

from tests.e2e.contract import Row
from tests.e2e.contract_makers import a_changed_fact, a_picture
from tests.e2e.contract_shapes import DIGEST, TIME

_HOP = {
    "fact": DIGEST,
    **dict.fromkeys(("subject", "predicate", "object"), str),
    "confidence": float,
    "episodes": int,
    "newest": TIME,
    "direction": frozenset({"in", "out"}),
}
ANSWER = {
    "kind": frozenset({"concept", "fact", "path"}),
    "rows": [
        {
            **dict.fromkeys(("start", "label", "way"), str),
            "depth": int,
            **dict.fromkeys(("confidence", "score"), float),
            "path": [_HOP],
        }
    ],
    "reason": str,
    "unknown": [{"name": str, "nearest": [str]}],
}
PICTURE = {
    "title": re.compile("Around user"),
    "nodes": [{"label": str, "depth": int, "score": float}],
    "arrows": [{"source": int, "target": int, "predicate": str, "confidence": float}],
    "hidden_nodes": int,
    "hidden_arrows": int,
}
_ASKED = "FIND fact WHERE predicate = favourite_sea FROM user DEPTH 1"
_ULM = "what is near the zeppelin over Ulm?"
GRAPH_ROWS = (
    Row(
        *("facts query", (_ASKED,), ANSWER, "favourite_sea", "facts/query", {"question": _ASKED}),
        given=a_changed_fact,
    ),
    Row(
        *("facts query", (_ULM, "--limit", "3"), ANSWER, "names nothing", "facts/query"),
        {"question": _ULM, "limit": 3},
    ),
    Row(
        *("facts graph", ("user", "--depth", "1", "--most", "9"), PICTURE, "favourite_sea"),
        *("facts/graph", {"name": "user", "depth": 1, "most": 9}),
        given=a_changed_fact,
    ),
    Row(
        *("facts graph", ("user", "--format", "dot"), PICTURE, "digraph"),
        given=a_changed_fact,
    ),
    Row(
        "facts graph",
        ("user", "--format", "svg", "--output", "{it}"),
        {"file": str, "bytes": int},
        "written to",
        given=a_picture,
    ),
)
