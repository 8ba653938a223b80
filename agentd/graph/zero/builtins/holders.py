"""Operations on Maps and Arrays. None changes what it is given."""

from __future__ import annotations

from agentd.graph.zero.call import Builtin, Call
from agentd.graph.zero.plain import INT_MAX
from agentd.graph.zero.values import Array, Map, Value

_FIELD = frozenset({"field"})


def _set_field(call: Call) -> Value:
    return Map({**call.map().entries, call.text_param("field"): call.inputs[1]})


def _merge(call: Call) -> Value:
    """One Map of all; of equal keys the later wins."""
    merged: dict[str, Value] = {}
    for index in range(len(call.inputs)):
        merged.update(call.map(index).entries)
    return Map(merged)


def _array_get(call: Call) -> Value:
    """The entry at `index`, counted from 0; Null behind the end."""
    found = call.array()
    index = call.whole_param("index", None, 0, INT_MAX)
    return found[index] if index < len(found) else None


HOLDERS = {
    "CreateMap": Builtin(lambda call: call.params, least=0, most=0, params=None),
    "GetField": Builtin(
        lambda call: call.map().get(call.text_param("field")), params=_FIELD, is_light=True
    ),
    "SetField": Builtin(_set_field, least=2, most=2, params=_FIELD),
    "MergeMap": Builtin(_merge, least=0, most=None),
    "ArrayPush": Builtin(lambda call: Array((*call.array(), call.inputs[1])), least=2, most=2),
    "ArrayGet": Builtin(_array_get, params=frozenset({"index"}), is_light=True),
}
