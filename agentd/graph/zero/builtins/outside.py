"""Operations that reach outside: time, states and memories. What they change is changed once the run
has ended well.
"""

from __future__ import annotations

from agentd.graph.tuples import SemanticTuple
from agentd.graph.zero.call import Builtin, Call
from agentd.graph.zero.faults import Unavailable, WrongValue
from agentd.graph.zero.fields import share_of
from agentd.graph.zero.plain import value_of
from agentd.graph.zero.values import Array, Confidence, Map, Value

MAX_DEPTH, MAX_RECALLED = 8, 1000
_DEPTH, _RECALLED = 3, 50
_STATEMENT = ("subject", "predicate", "object")


def _timestamp(call: Call) -> Value:
    """Milliseconds since 1970 in UTC."""
    if call.host.clock is None:
        raise _missing(call, "a clock")
    return int(call.host.clock.now().timestamp() * 1000)


def _load(call: Call) -> Value:
    """What is kept under a key: what this run has saved, else what was kept before it, else Null."""
    key = call.text()
    if call.host.states is None:
        raise _missing(call, "a store of states")
    if key in call.effects.saved:
        return call.effects.saved[key]
    return value_of(call.host.states.load(key))


def _save(call: Call) -> Value:
    if call.host.states is None:
        raise _missing(call, "a store of states")
    call.effects.saved[call.text()] = call.inputs[1]
    return call.inputs[1]


def _remember(call: Call) -> Value:
    """Remember a statement: a Map of subject, predicate, object and perhaps confidence; or a subject
    and an object, with the others as parameters. Returns the Map.
    """
    if call.host.memories is None:
        raise _missing(call, "a memory")
    given: dict[str, Value] = dict(call.params)
    if len(call.inputs) == 1:
        given = {**call.map(), **given}
    else:
        given |= {"subject": call.text(0), "object": call.text(1)}
    words = [given.get(name) for name in _STATEMENT]
    sure = share_of(given.get("confidence", 1.0))
    if sure is None or given.keys() - {*_STATEMENT, "confidence"}:
        raise WrongValue(
            "MemoryStore needs subject, predicate, object and a confidence from 0 to 1"
        )
    subject, predicate, thing = (word if isinstance(word, str) else "" for word in words)
    if not (subject.strip() and predicate.strip() and thing.strip()):
        raise WrongValue("MemoryStore needs a subject, a predicate and an object that are Strings")
    statement = SemanticTuple(subject, predicate, thing, sure)
    call.effects.stored.append(statement)
    return _told(statement)


def _recall(call: Call) -> Value:
    """What is remembered around a concept before this run: an Array of Maps, the surest first."""
    if call.host.memories is None:
        raise _missing(call, "a memory")
    limit = call.whole_param("limit", _RECALLED, 1, MAX_RECALLED)
    found = call.host.memories.recall(
        call.text(),
        predicate=call.text_param("predicate", ""),
        depth=call.whole_param("depth", _DEPTH, 1, MAX_DEPTH),
        limit=limit,
    )
    return Array([_told(statement) for statement in found[:limit]])


def _told(statement: SemanticTuple) -> Map:
    return Map(
        {
            "subject": statement.subject,
            "predicate": statement.predicate,
            "object": statement.object,
            "confidence": Confidence(statement.confidence),
        }
    )


def _missing(call: Call, what: str) -> Unavailable:
    return Unavailable(
        f"{call.op} needs {what}, and this run has none", cure="run the graph through a runtime"
    )


OUTSIDE = {
    "Timestamp": Builtin(_timestamp, least=0, most=0),
    "LoadState": Builtin(_load),
    "SaveState": Builtin(_save, least=2, most=2),
    "MemoryStore": Builtin(_remember, most=2, params=frozenset({"predicate", "confidence"})),
    "MemoryRecall": Builtin(_recall, params=frozenset({"predicate", "depth", "limit"})),
}
