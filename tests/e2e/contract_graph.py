"""The part of the table that is about how what is known hangs together."""

from __future__ import annotations

import re

from tests.e2e.contract import Row
from tests.e2e.contract_makers import (
    a_changed_fact,
    a_file_of_statements,
    a_picture,
    a_program,
)
from tests.e2e.contract_shapes import DIGEST, TIME

_HOP = {
    "fact": DIGEST,
    **dict.fromkeys(("subject", "predicate", "object"), str),
    "confidence": float,
    "episodes": int,
    "newest": TIME,
    "direction": frozenset({"in", "out"}),
}
WAYS = frozenset({"paths", "breadth", "activation"})
_COUNTS, _TIMES = dict.fromkeys(("said", "denied"), int), dict.fromkeys(("first", "last"), TIME)
ANSWER = {
    "kind": frozenset({"concept", "fact", "path"}),
    "by": WAYS,
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
    "tellers": {str: [str]},
}
PICTURE = {
    "title": re.compile("Around user(, by (breadth|activation))?"),
    "by": WAYS,
    "nodes": [{"label": str, "depth": int, "score": float}],
    "arrows": [
        {
            **dict.fromkeys(("source", "target"), int),
            "predicate": str,
            "confidence": float,
            "history": ({**_COUNTS, **_TIMES, "memory": frozenset({"episodic", "semantic"})}, None),
        }
    ],
    "hidden_nodes": int,
    "hidden_arrows": int,
}
TOLD = {**PICTURE, "text": str}
COMPILED = {"episodes": int, "text": str}
RAN = {"graphs": [{"name": str, "outputs": {str: int}, "confidence": float, "hash": DIGEST}]}
_ASKED = "FIND fact WHERE predicate = favourite_sea FROM user DEPTH 1"
_MINDED = "FIND concept WHERE predicate = favourite_sea FROM user BY activation"
_ULM = "what is near the zeppelin over Ulm?"
_FORMS = {
    "0c": "0M:1.0",
    "zero": "MergeMap",
    "prompt": "favourite_sea",
}
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
        *("facts query", (_MINDED,), ANSWER, "user -favourite_sea->", "facts/query"),
        {"question": _MINDED},
        given=a_changed_fact,
    ),
    Row(
        *("facts graph", ("user", "--by", "breadth", "--depth", "3"), PICTURE, "semantic"),
        *("facts/graph", {"name": "user", "by": "breadth", "depth": 3}),
        given=a_changed_fact,
    ),
    Row(
        *("facts graph", ("user", "--by", "activation", "--depth", "4"), PICTURE, "semantic"),
        *("facts/graph", {"name": "user", "by": "activation", "depth": 4}),
        given=a_changed_fact,
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
        ("user", "--format", "html", "--output", "{it}"),
        {"file": str, "bytes": int},
        "written to",
        given=a_picture,
    ),
    *(
        Row(
            *("facts graph", ("user", "--format", form), TOLD, says),
            *("facts/graph", {"name": "user", "form": form}),
            given=a_changed_fact,
            notes=True,
        )
        for form, says in _FORMS.items()
    ),
)
PROGRAM_ROWS = (  # these need neither a daemon nor the graph
    Row("facts run", ("{it}", "--input", "it=5"), RAN, "  it: 5\n", given=a_program, without=0),
    Row("facts compile", ("{it}",), COMPILED, "entry_point", given=a_file_of_statements, without=0),
)
