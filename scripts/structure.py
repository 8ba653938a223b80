"""The structure of agentd/ in figures, or as a map: `python scripts/structure.py
[--map | --repetitions]`.

The map is the first paragraph of each module's docstring, so it is as true as the code it stands
in.
"""

from __future__ import annotations

import ast
import inspect
import re
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "agentd"
_SHARED = 6  # lines that two places share
_LEAST_LETTERS = 80  # in them: brackets alone say nothing


@cache
def modules() -> dict[str, ast.Module]:
    """Every module and package of agentd by its path below the root, parsed."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def summary(path: Path) -> str:
    """The first paragraph of what a module says of itself. Reads no further than that, so a map of
    the whole package is a matter of a moment.
    """
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.STRING:
                said = inspect.cleandoc(ast.literal_eval(token.string))
                return " ".join(said.partition("\n\n")[0].split())
            if token.type == tokenize.NAME:  # it begins with code
                break
    return ""


def map_lines() -> Iterator[str]:
    """One line for each package and each module in it."""
    for path in sorted(PACKAGE.rglob("*.py"), key=lambda path: (path.parent.parts, path.name)):
        if path.name == "__init__.py":
            yield f"\n{path.parent.relative_to(ROOT).as_posix()}/  {summary(path)}"
        else:
            yield f"  {path.name:24} {summary(path)}"


def lengths() -> list[int]:
    """Lines of each module; of packages only those that hold more than their docstring."""
    return sorted(
        len((ROOT / name).read_text(encoding="utf-8").splitlines())
        for name, tree in modules().items()
        if not name.endswith("__init__.py") or len(tree.body) > 1
    )


def functions() -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [n for tree in modules().values() for n in ast.walk(tree) if isinstance(n, kinds)]


def doubled_classes() -> list[str]:
    """Names that more than one class has, private ones aside."""
    names = Counter(
        node.name
        for tree in modules().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, times in names.items() if times > 1)


def frequent_basenames() -> list[str]:
    """File names that more than three modules have."""
    names = Counter(Path(name).name for name in modules())
    return sorted(n for n, times in names.items() if times > 3 and n != "__init__.py")


def largest_port() -> tuple[str, int]:
    """The Protocol of `agentd/core/ports/` with the most methods, and how many."""
    methods = {
        node.name: sum(isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef)) for x in node.body)
        for name, tree in modules().items()
        if name.startswith("agentd/core/ports/")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    name = max(methods, key=methods.__getitem__)
    return name, methods[name]


def raising() -> tuple[int, int]:
    """How many public functions say what they raise, and how many raise with a `raise` of their
    own.

    A function inside another one is nobody's to call, and counts with that one.
    """
    saying = total = 0
    for function in _outermost():
        if function.name.startswith("_") or not _raises(function):
            continue
        total += 1
        saying += (
            re.search(r"\braises?\b", ast.get_docstring(function) or "", re.IGNORECASE) is not None
        )
    return saying, total


def _outermost() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of modules and methods of their classes."""
    for tree in modules().values():
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in [*tree.body, *(part for found in classes for part in found.body)]:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node


def _raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(n, ast.Raise) and n.exc is not None for n in ast.walk(function))


def deferred() -> int:
    """Imports that stand inside functions."""
    return sum(
        isinstance(node, (ast.Import, ast.ImportFrom))
        for function in functions()
        for node in ast.walk(function)
    )


def code_lines(name: str, tree: ast.Module) -> list[str]:
    """A module's lines without imports, docstrings, comments and the heads of its functions, which
    an implementation shares with its port.
    """
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            left_out |= set(range(node.lineno - len(node.decorator_list), node.body[0].lineno))
        elif isinstance(node, (ast.Import, ast.ImportFrom)) or _is_docstring(node):
            left_out |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for number, line in enumerate(lines, 1) if number not in left_out)
    return [line for line in kept if line and not line.startswith("#")]


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def repetitions() -> Iterator[str]:
    """Pairs of places that share six lines of code in a row, the longest run of a pair told
    once.
    """
    places: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for name, tree in modules().items():
        lines = code_lines(name, tree)
        for at in range(len(lines) - _SHARED + 1):
            run = tuple(lines[at : at + _SHARED])
            if sum(map(len, run)) >= _LEAST_LETTERS:
                places.setdefault(run, []).append((name, at))
    pairs = {pair: run for run, found in places.items() for pair in combinations(found, 2)}
    for ((one, at), (other, there)), run in pairs.items():
        begins = ((one, at - 1), (other, there - 1)) not in pairs
        if begins and (one != other or there - at >= _SHARED):
            yield f"{one} and {other}: {run[0]}"


def figures() -> Iterator[tuple[str, str]]:
    """Each figure with its name."""
    lines = lengths()
    port, methods = largest_port()
    saying, total = raising()
    entries = [p for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()]
    yield "modules", str(len(lines))
    yield (
        "lines of a module, median / ninth tenth",
        (f"{statistics.median(lines):.0f} / {lines[len(lines) * 9 // 10]}"),
    )
    yield "lines in all", str(sum(lines))
    yield "top-level entries", str(len(entries))
    yield "class names defined twice", str(len(doubled_classes()))
    yield "file names used more than three times", ", ".join(frequent_basenames()) or "none"
    yield "largest port", f"{port}, {methods} methods"
    yield (
        "public functions that say what they raise, of those that do",
        (f"{saying} of {total} ({saying / total:.0%})"),
    )
    yield "deferred imports", str(deferred())
    yield "pairs of places that share six lines of code", str(len(list(repetitions())))


def main() -> None:
    """Print the map, what is repeated, or the figures."""
    if "--repetitions" in sys.argv[1:]:
        print("\n".join(repetitions()))
        return
    if "--map" in sys.argv[1:]:
        print("\n".join(map_lines()).strip())
        return
    for name, figure in figures():
        print(f"{name:60} {figure}")


if __name__ == "__main__":
    main()
