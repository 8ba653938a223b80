"""Rules of the code that no linter knows. Each one proves first that it looked at something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from agentd.core import failpoints, ports

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(ROOT.glob("agentd/**/*.py"))
SOURCES = [*MODULES, *sorted(ROOT.glob("tests/**/*.py")), *sorted(ROOT.glob("benchmarks/**/*.py"))]

MODULE_LINES = 600  # a subject in one module reads better than in several that call each other
FUNCTION_LINES = 55
EXEMPTIONS = 9  # may only go down
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What others import.
REEXPORTING = ("agentd", "agentd/zero", "agentd/core/ports", "agentd/testing")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, DEFINITIONS):
            yield node


def deferred(path: Path) -> Iterator[str]:
    for function in functions(path):
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def allowed() -> list[tuple[str, str]]:
    """The fence of ARCHITECTURE.md: a module or folder, each module that it defers, and why."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    fence = re.search(r"```deferred-imports\n(.*?)```", page, re.DOTALL)
    assert fence
    lines = (line.partition("#")[0].split() for line in fence[1].splitlines())
    return [(place, module) for place, *modules in lines for module in modules]


def test_there_is_code_to_look_at() -> None:
    assert len(MODULES) > 60
    assert sum(1 for path in MODULES for _ in functions(path)) > 500


def test_every_module_says_what_it_is() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(tree(path))]
    assert not silent


def test_modules_and_functions_stay_small() -> None:
    long = [
        f"{name(path)}: {lines} lines"
        for path in MODULES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MODULE_LINES
    ]
    long += [
        f"{name(path)}: {function.name} has {lines} lines"
        for path in MODULES
        for function in functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    ]
    assert not long


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    packages = [path for path in MODULES if path.name == "__init__.py"]
    assert packages
    full = [
        name(path)
        for path in packages
        if name(path.parent) not in REEXPORTING and len(tree(path).body) > 1
    ]
    assert not full


def port_of(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef(name=port):
            return port
        case ast.AnnAssign(target=ast.Name(id=port), annotation=ast.Name(id="TypeAlias")):
            return port
    return ""


def test_the_ports_are_listed_on_their_page_and_imported_from_there() -> None:
    page = ast.get_docstring(tree(ROOT / "agentd/core/ports/__init__.py")) or ""
    listed = {
        f"agentd.core.ports.{module}": sorted(re.split(r",\s+", names))
        for module, names in re.findall(r"^(\w+) {2,}(\w.*(?:\n {4,}\w.*)*)$", page, re.MULTILINE)
    }
    stand = {
        f"agentd.core.ports.{path.stem}": sorted(filter(None, map(port_of, tree(path).body)))
        for path in MODULES
        if path.parent == ROOT / "agentd/core/ports" and path.name != "__init__.py"
    }
    assert listed == stand
    assert sorted(chain(*stand.values())) == sorted(ports.__all__)
    past_the_page = re.compile(r"^\s*(?:from|import) agentd\.core\.ports\.", re.MULTILINE)
    around = {
        path.parent
        for path in SOURCES
        if past_the_page.search(path.read_text(encoding="utf-8"))  # parsing all takes seconds
    }
    assert around == {ROOT / "agentd/core/ports"}


def test_imports_stand_at_the_top_but_where_the_architecture_says_so() -> None:
    found = [(name(path), module) for path in MODULES for module in deferred(path)]
    surprising = [
        f"{place} imports {module} late"
        for place, module in found
        if not any(place.startswith(known) and what == module for known, what in allowed())
    ]
    assert not surprising
    stale = [
        f"{known} no longer defers {what}"
        for known, what in allowed()
        if not any(place.startswith(known) and what == module for place, module in found)
    ]
    assert not stale


def test_every_failpoint_is_passed_somewhere_and_every_passed_one_has_a_name() -> None:
    passed = {
        argument.value
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("failpoints.hit", "hit", "self._pass")
        and isinstance(argument := node.args[0], ast.Constant)
    }
    assert passed
    assert passed == set(failpoints.NAMES)


def test_exemptions_name_their_code_and_their_reason_and_stay_few() -> None:
    marks = re.compile(r"#\s*(?:noqa|type:\s*ignore).*", re.IGNORECASE)
    good = re.compile(r"# noqa: [A-Z0-9, ]+ - \S.*|# type: ignore\[[a-z, -]+\]  # \S.*")
    found = [
        (name(path), match[0])
        for path in SOURCES
        if path != Path(__file__).resolve()
        for match in marks.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found
    assert not [(place, mark) for place, mark in found if not good.fullmatch(mark)]
    assert len([place for place, _ in found if place.startswith("agentd/")]) <= EXEMPTIONS


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX"])
def test_nothing_is_put_off(word: str) -> None:
    pattern = re.compile(rf"#.*\b{word}\b")
    assert not [name(path) for path in MODULES if pattern.search(path.read_text(encoding="utf-8"))]


def test_a_docstring_that_points_to_a_port_names_the_one_with_that_method() -> None:
    methods = {
        port.name: {part.name for part in port.body if isinstance(part, DEFINITIONS)}
        for path in (ROOT / "agentd" / "core" / "ports").glob("*.py")
        for port in tree(path).body
        if isinstance(port, ast.ClassDef)
    }
    pointing = [
        (path, function, found[1])
        for path in MODULES
        for function in functions(path)
        if (found := re.match(r"See `?(\w+)`?\.(?!\w)", ast.get_docstring(function) or ""))
        and found[1] in methods
    ]
    assert len(pointing) > 100
    wrong = [
        f"{name(path)}: {function.name}, {port} has none"
        for path, function, port in pointing
        if function.name not in methods[port]
    ]
    assert not wrong
