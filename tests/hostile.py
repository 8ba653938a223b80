"""Every pattern of agentd, and text made against each: what its repetitions take, again and again,
and then what ends no match.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import pkgutil
import re
import re._constants as codes
import re._parser as parser
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import regex
from msgspec import Struct

import agentd

_APART = {
    "agentd.memory.index.embedding.onnx_export",
    "agentd.memory.index.embedding.torch_model",
}  # need extras
_SAMPLES = {
    codes.CATEGORY_DIGIT: "7",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "w",
    codes.CATEGORY_NOT_DIGIT: "w",
    codes.CATEGORY_NOT_SPACE: "w",
    codes.CATEGORY_NOT_WORD: "-",
}
_ALWAYS = (" ", "\n", "a", "7", "-")
_NESTED = ("([{", ")]}", "<a>", "[](", "**", "``", '\\"', "a ", " \n", "\r\n", "a,", "7.")
_EVERYWHERE = {"finditer", "findall", "sub", "subn", "split"}
_SINGLES = 4
_METHODS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
# Without it a file uses no pattern.
_USE = re.compile(rf"\.(?:compile|{'|'.join(sorted(_METHODS))})\b")
_MOST = 24  # units of one pattern


def modules() -> Iterator[ModuleType]:
    """All of agentd that can be imported here."""
    for found in pkgutil.walk_packages(agentd.__path__, "agentd."):
        if not found.name.endswith("__main__") and found.name not in _APART:
            yield importlib.import_module(found.name)


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, and the methods by which agentd uses it."""

    pattern: Any
    methods: frozenset[str]


def patterns() -> dict[str, Found]:
    """Every pattern of agentd by its place: those that stand in a module or a class of it, in
    whatever collection, and those that functions make, with a word for what is put into them.
    """
    found: dict[str, Found] = {}
    known: set[int] = set()
    for module in modules():
        for name, pattern in _standing(module):
            if id(pattern) not in known:
                known.add(id(pattern))
                place = f"{module.__name__}.{name}"
                number = sum(1 for one in found if one.split("#")[0] == place)
                key = f"{place}#{number}" if number else place
                found[key] = Found(pattern, frozenset(_uses(module.__name__, name)))
        for line, method, pattern in _made(module):
            found[f"{module.__name__}:{line}"] = Found(pattern, frozenset({method}))
    return found


def unread() -> list[str]:
    """Calls that make a pattern of which the text cannot be told."""
    return [
        f"{module.__name__}:{call.lineno}"
        for module in modules()
        for call in _calls(module)
        if _evaluated(module, call.args[0]) is None
    ]


def texts(pattern: Any) -> Iterator[Callable[[int], str]]:
    """Makers of texts of a given number of characters."""
    own = list(dict.fromkeys(_units(pattern)))[:_MOST]
    singles = list(dict.fromkeys([*[unit for unit in own if len(unit) == 1][:_SINGLES], *_ALWAYS]))
    units = [*own, *_ALWAYS]
    pairs = [a + b for a, b in itertools.permutations(singles, 2)]
    longest = max(units, key=len)
    heads = [*(longest[:end] for end in range(2, min(len(longest), 14), 2)), longest]
    for unit in dict.fromkeys([*units, *_NESTED, *pairs]):
        yield partial(_of, "", unit)
    for head, unit in itertools.product(heads, singles):
        yield partial(_of, head, unit)
        yield partial(_of, "", head + unit * 40)


def seconds(pattern: Any, method: str, text: str, most: float) -> float:
    """The processor time of going through a text; `most` where it was given up since it took that
    long.
    """
    given: str | bytes = text.encode() if isinstance(pattern.pattern, bytes) else text
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    began = time.thread_time()
    try:
        if method in _EVERYWHERE:
            deque(pattern.finditer(given), 0)
        else:
            getattr(pattern, method)(given)
        return time.thread_time() - began
    except _TooLong:
        return most
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class _TooLong(Exception):
    """A pattern has had its time."""


def _give_up(*_: object) -> None:
    raise _TooLong


def _of(head: str, unit: str, size: int) -> str:
    return (head + unit * (size // len(unit) + 1))[:size] + "\0"


def _standing(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        for pattern in _within(value):
            yield name, pattern
        if isinstance(value, type) and value.__module__ == module.__name__:
            for attribute, inner in vars(value).items():
                for pattern in _within(inner):
                    yield f"{name}.{attribute}", pattern


def _uses(module: str, name: str) -> set[str]:
    """The methods that are called on patterns of that name in their module, wherever if it is
    public; `finditer`, which tries them everywhere, where that cannot be told.
    """
    bare = name.rpartition(".")[2]
    where = {module} if bare.startswith("_") else set(_used())
    found = {method for one in where for method in _used().get(one, {}).get(bare, ())}
    return found or {"finditer"}


def _made(module: ModuleType) -> Iterator[tuple[int, str, Any]]:
    """The patterns that functions of a module make: line, method, pattern."""
    for call in _calls(module):
        assert isinstance(call.func, ast.Attribute)
        source = _evaluated(module, call.args[0])
        if source is None:
            continue
        flags = [_evaluated(module, one.value) for one in call.keywords if one.arg == "flags"]
        if call.func.attr in ("compile", "search", "match", "fullmatch", "findall", "finditer"):
            flags += [
                _evaluated(module, one) for one in call.args[1 + (call.func.attr != "compile") :]
            ]
        flag = next((one for one in flags if isinstance(one, re.RegexFlag)), re.NOFLAG)
        method = "finditer" if call.func.attr == "compile" else call.func.attr
        yield call.lineno, method, re.compile(source, flag)


def _calls(module: ModuleType) -> Iterator[ast.Call]:
    """The calls of `re` within functions of a module."""
    for function in ast.walk(_tree(Path(str(module.__file__)))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id in ("re", "regex")
                    and node.func.attr in {*_METHODS, "compile"}
                ):
                    yield node


@cache
def _tree(file: Path) -> ast.Module:
    """Of a file that may use patterns; an empty one of any other."""
    source = file.read_text("utf-8")
    return ast.parse(source if _USE.search(source) else "")


class _Words(dict[str, Any]):
    """What a function would know: a word for every name that its module does not."""

    def __init__(self, module: ModuleType) -> None:
        self._known = {**vars(builtins), **vars(module)}

    def __missing__(self, name: str) -> Any:
        return self._known.get(name, "word")


def _evaluated(module: ModuleType, node: ast.expr) -> Any:
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), {}, _Words(module))
    except (AttributeError, TypeError, LookupError, ValueError):
        return None


@cache
def _used() -> dict[str, dict[str, set[str]]]:
    found: dict[str, dict[str, set[str]]] = {}
    root = Path(agentd.__path__[0])
    for file in root.rglob("*.py"):
        module = ".".join(file.relative_to(root.parent).with_suffix("").parts)
        for node in ast.walk(_tree(file)):
            if not isinstance(node, ast.Attribute) or node.attr not in _METHODS:
                continue
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            found.setdefault(module, {}).setdefault(name, set()).add(node.attr)
    return found


def _within(value: Any, depth: int = 3) -> Iterator[Any]:
    if isinstance(value, re.Pattern | regex.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from _within(item, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _within(item, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _within(getattr(value, field.name), depth - 1)
    elif depth and isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _within(getattr(value, name), depth - 1)


def _units(pattern: Any) -> Iterator[str]:
    source = pattern.pattern
    source = source if isinstance(source, str) else source.decode("latin-1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(source, pattern.flags & ~re.UNICODE & ~re.ASCII)
    except re.error:  # only `regex` reads it
        return
    whole = _sample(tree)
    if whole:
        yield whole
        yield whole[: len(whole) // 2] or whole
    yield from _parts(tree)


def _parts(tree: Iterable[Any]) -> Iterator[str]:
    """A sample of everything that is repeated, and all single letters."""
    for code, value in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            if sample := _sample(value[2]):
                yield sample
            yield from _parts(value[2])
        elif code is codes.SUBPATTERN:
            yield from _parts(value[3])
        elif code is codes.ATOMIC_GROUP:
            yield from _parts(value)
        elif code is codes.BRANCH:
            for branch in value[1]:
                if sample := _sample(branch):
                    yield sample
                yield from _parts(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _parts(value[1])
        elif sample := _sample([(code, value)]):
            yield sample


def _sample(tree: Iterable[Any]) -> str:
    """Some text that this matches."""
    said = ""
    for code, value in tree:
        if code is codes.LITERAL:
            said += chr(value)
        elif code is codes.NOT_LITERAL or code is codes.ANY:
            said += "x"
        elif code is codes.IN:
            said += _member(value)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            said += _sample(value[2]) * max(1, min(value[0], 8))
        elif code is codes.SUBPATTERN:
            said += _sample(value[3])
        elif code is codes.ATOMIC_GROUP:
            said += _sample(value)
        elif code is codes.BRANCH:
            said += _sample(value[1][0])
        elif code is codes.CATEGORY:
            said += _SAMPLES.get(value, "w")
    return said


def _member(members: Iterable[Any]) -> str:
    is_negated = False
    for code, value in members:
        if code is codes.NEGATE:
            is_negated = True
        elif is_negated:
            continue
        elif code is codes.LITERAL:
            return chr(value)
        elif code is codes.RANGE:
            return chr(value[0])
        elif code is codes.CATEGORY:
            return _SAMPLES.get(value, "w")
    return "x"
