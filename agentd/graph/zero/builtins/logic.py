"""Operations that compare and choose."""

from __future__ import annotations

from agentd.graph.zero.call import Builtin, Call
from agentd.graph.zero.faults import WrongValue
from agentd.graph.zero.values import Value, is_same, is_truthy


def _is_equal(call: Call) -> bool:
    """Whether both inputs, or the input and `compare`, are of one kind and equal."""
    if (len(call.inputs) == 2) == ("compare" in call.params):
        raise WrongValue(f"{call.op} needs a second input or the parameter 'compare'")
    other = call.inputs[1] if len(call.inputs) == 2 else call.params["compare"]
    return is_same(call.inputs[0], other)


def _if(call: Call) -> Value:
    """The second input if the first is truthy, else the third, which is Null if it is not given."""
    if is_truthy(call.inputs[0]):
        return call.inputs[1]
    return call.inputs[2] if len(call.inputs) == 3 else None


_COMPARE = frozenset({"compare"})
LOGIC = {
    "Identity": Builtin(lambda call: call.inputs[0], is_light=True),
    "Equals": Builtin(_is_equal, most=2, params=_COMPARE),
    "NotEquals": Builtin(lambda call: not _is_equal(call), most=2, params=_COMPARE),
    "And": Builtin(lambda call: all(map(is_truthy, call.inputs)), most=None, is_light=True),
    "Or": Builtin(lambda call: any(map(is_truthy, call.inputs)), most=None, is_light=True),
    "Not": Builtin(lambda call: not is_truthy(call.inputs[0]), is_light=True),
    "If": Builtin(_if, least=2, most=3, is_light=True),
}
