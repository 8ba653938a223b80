"""Evaluates conditions of questions on paths. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Final, assert_never

from msgspec import Struct

from agentd.memory.graph.query import Comparison, Condition, Conjunction, Disjunction, Negation
from agentd.zero.naming import normal_label, normal_predicate

Fields = Callable[[str], "str | float | frozenset[str]"]
LABELS: Final = frozenset(("label", "subject", "object", "start"))
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Normalised(Struct, frozen=True):
    """A condition with normalised names, and what it needs."""

    condition: Condition
    needs_labels: bool
    predicate: str | None

    def holds(self, fields: Fields) -> bool:
        """Whether the condition is true, given a function that returns the value of a field: a
        number, a name, or a set of names.
        """
        return _holds(self.condition, fields)


def normalise(condition: Condition, resolve: Callable[[str], str] = normal_label) -> Normalised:
    """Normalise the labels of a condition by `resolve` and its predicates by `normal_predicate`.
    `predicate` of the result is the predicate that the last fact of every matching path must have,
    if the condition demands one. Raises GraphError for an invalid name.
    """
    normal = _normal(condition, resolve)
    used = {comparison.field for comparison in _comparisons(normal)}
    return Normalised(normal, bool(used & LABELS), _demanded_predicate(normal))


def _normal(condition: Condition, resolve: Callable[[str], str]) -> Condition:
    match condition:
        case Comparison(field, sign, str(value)):
            if field == "predicate":
                return Comparison(field, sign, normal_predicate(value))
            return Comparison(field, sign, resolve(value) if field in LABELS else value.lower())
        case Comparison():
            return condition
        case Negation(inner):
            return Negation(_normal(inner, resolve))
        case Conjunction(parts):
            return Conjunction(tuple(_normal(part, resolve) for part in parts))
        case Disjunction(parts):
            return Disjunction(tuple(_normal(part, resolve) for part in parts))
    assert_never(condition)


def _comparisons(condition: Condition) -> Iterator[Comparison]:
    match condition:
        case Comparison():
            yield condition
        case Negation(inner):
            yield from _comparisons(inner)
        case Conjunction(parts) | Disjunction(parts):
            for part in parts:
                yield from _comparisons(part)


def _demanded_predicate(condition: Condition) -> str | None:
    match condition:
        case Comparison("predicate", "=", str(value)):
            return value
        case Conjunction(parts):
            return next(
                (name for part in parts if (name := _demanded_predicate(part)) is not None), None
            )
    return None


def _holds(condition: Condition, fields: Fields) -> bool:
    match condition:
        case Comparison(field, sign, value):
            return _compare(fields(field), sign, value)
        case Negation(inner):
            return not _holds(inner, fields)
        case Conjunction(parts):
            return all(_holds(part, fields) for part in parts)
        case Disjunction(parts):
            return any(_holds(part, fields) for part in parts)
    assert_never(condition)


def _compare(found: str | float | frozenset[str], sign: str, value: str | float) -> bool:
    if isinstance(value, str):
        names = found if isinstance(found, frozenset) else (found,)
        return (value in names) == (sign == "=")
    assert isinstance(found, (int, float))
    return _OPERATORS[sign](found, value)
