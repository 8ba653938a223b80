"""No table of words decides what a sentence means in facts, memory and graph: models read, and the
rules that stand in for one live in `providers/offline/`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENTD = Path(__file__).parent.parent / "agentd"
MOST = 8  # words in one literal
WORD = re.compile(r"[^\W\d_]{2,}(?:['’-][^\W\d_]+)*")
ALTERNATIVES = re.compile(r"[|\s]+")
# Collections that are no words of anybody's language, or that decide nothing.
EXEMPT = {
    "memory/graph/query.py": "the words of the graph's own query language",
    "zero/__init__.py": "names that the language exports",
    "zero/builtins.py": "names of its operations",
    "zero/values.py": "names of its types",
    "memory/facts/page_entry.py": "fields of an annotation",
    "memory/facts/proposals.py": "fields of an answer",
}


# How words are searched and weighed: they decide nothing of what a sentence means.
SEARCH = ("memory/index/search", "memory/index/ranking", "memory/index/embedding")


def modules() -> list[Path]:
    search = {path for folder in SEARCH for path in (AGENTD / folder).glob("*.py")}
    folders = (AGENTD / "memory", AGENTD / "zero")
    return sorted({path for folder in folders for path in folder.rglob("*.py")} - search)


def tables(tree: ast.AST) -> Iterator[int]:
    """The lines of literals that hold more words than a closed set of ours has."""
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                words = [text for part in parts if (text := constant(part))]
            case ast.Dict(keys=keys, values=values):
                sides = ([k for k in keys if k is not None], values)
                words = max(
                    ([text for part in side if (text := constant(part))] for side in sides), key=len
                )
            case ast.Call(func=ast.Attribute(attr="split"), args=[]):
                words = (constant(node.func.value) or "").split()
            case ast.Call(func=ast.Attribute(attr="compile"), args=[pattern, *_]):
                words = alternatives(pattern)
            case _:
                continue
        if sum(bool(WORD.fullmatch(word)) for word in words) > MOST:
            yield node.lineno


def alternatives(pattern: ast.AST) -> list[str]:
    """The words between which a pattern chooses, in the group that has most of them."""
    text = "".join(
        part.value
        for part in ast.walk(pattern)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    groups = re.split(r"\((?:\?[:=!<]*)?|\)", re.sub(r"\\.|\[[^\]]*\]", "", text))
    found = [ALTERNATIVES.split(group) for group in groups if group.count("|") >= MOST]
    return max(found, key=len, default=[])


def constant(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(AGENTD).as_posix())
def test_a_module_holds_no_table_of_words(path):
    found = list(tables(ast.parse(path.read_text(encoding="utf-8"))))
    name = path.relative_to(AGENTD).as_posix()
    if name in EXEMPT:
        assert found, f"{name} holds no table any more: take it off the list"
    else:
        assert not found, f"{name} has tables of words in lines {found}"


@pytest.mark.parametrize(
    "code",
    [
        (
            "X = {'red': 1, 'green': 2, 'blue': 3, 'white': 4, 'black': 5, 'grey': 6, 'brown': 7, "
            "'pink': 8, 'tan': 9}"
        ),
        "X = 'mother father sister brother aunt uncle cousin niece nephew'.split()",
        "X = re.compile(r'\\b(?:mother|father|sister|brother|aunt|uncle|cousin|niece|nephew)\\b')",
        "X = frozenset(('is', 'are', 'was', 'were', 'be', 'been', 'am', 'being', 'has'))",
    ],
)
def test_a_table_of_words_is_found(code):
    assert list(tables(ast.parse(code)))


def test_rules_of_language_are_imported_by_their_provider_alone():
    named = re.compile(r"^\s*(?:from|import) agentd\.providers\.offline\b", re.MULTILINE)
    importers = {
        path.relative_to(AGENTD).as_posix()
        for path in AGENTD.rglob("*.py")
        if named.search(path.read_text(encoding="utf-8"))
        and not path.is_relative_to(AGENTD / "providers" / "offline")
    }
    assert importers == {"providers/assembly.py"}
