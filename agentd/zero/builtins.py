"""The language's operations by name, in groups."""

from __future__ import annotations

import hmac
from hashlib import sha256
from math import fsum, prod
from types import MappingProxyType

from agentd.zero.call import Builtin, Call, Number
from agentd.zero.faults import LimitReached, Unavailable, WrongValue
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import (
    ENTRY,
    INT_MAX,
    MAX_SIZE,
    Array,
    Confidence,
    Hash32,
    Map,
    Value,
    encode,
    is_same,
    is_truthy,
    real,
    share_of,
    value_of,
    whole,
)

_FIELD = frozenset({"field"})


def _set_field(call: Call) -> Value:
    return Map({**call.map().entries, call.text_param("field"): call.inputs[1]})


def _merge(call: Call) -> Value:
    """Return one Map of all inputs; a later input wins where keys are equal."""
    merged: dict[str, Value] = {}
    for index in range(len(call.inputs)):
        merged.update(call.map(index).entries)
    return Map(merged)


def _array_get(call: Call) -> Value:
    """Return the entry at `index`, from 0; Null beyond the end."""
    found = call.array()
    index = call.whole_param("index", None, 0, INT_MAX)
    return found[index] if index < len(found) else None


# Operations on Maps and Arrays; none changes its inputs.
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


def _is_equal(call: Call) -> bool:
    """Whether both inputs, or the input and the parameter `compare`, are of one kind and equal."""
    if (len(call.inputs) == 2) == ("compare" in call.params):
        raise WrongValue(f"{call.op} needs a second input or the parameter 'compare'")
    other = call.inputs[1] if len(call.inputs) == 2 else call.params["compare"]
    return is_same(call.inputs[0], other)


def _if(call: Call) -> Value:
    """Return the second input if the first is truthy, else the third, or Null without a third."""
    if is_truthy(call.inputs[0]):
        return call.inputs[1]
    return call.inputs[2] if len(call.inputs) == 3 else None


_COMPARE = frozenset({"compare"})

# Operations that compare and choose.
LOGIC = {
    "Identity": Builtin(lambda call: call.inputs[0], is_light=True),
    "Equals": Builtin(_is_equal, most=2, params=_COMPARE),
    "NotEquals": Builtin(lambda call: not _is_equal(call), most=2, params=_COMPARE),
    "And": Builtin(lambda call: all(map(is_truthy, call.inputs)), most=None, is_light=True),
    "Or": Builtin(lambda call: any(map(is_truthy, call.inputs)), most=None, is_light=True),
    "Not": Builtin(lambda call: not is_truthy(call.inputs[0]), is_light=True),
    "If": Builtin(_if, least=2, most=3, is_light=True),
}


def _numbers(call: Call) -> list[Number]:
    return [call.number(index) for index in range(len(call.inputs))]


def _number_value(made: Number) -> Value:
    return whole(made) if isinstance(made, int) else real(made)


def _multiply(call: Call) -> Value:
    """Return the product; a Confidence if all inputs are Confidences."""
    numbers = _numbers(call)
    if all(isinstance(found, Confidence) for found in call.inputs):
        return Confidence(float(prod(numbers)))
    product: Number = 1
    for number in numbers:
        product *= number
        _number_value(product)
    return product


def _add(call: Call) -> Value:
    numbers = _numbers(call)
    if all(isinstance(number, int) for number in numbers):
        return _number_value(sum(numbers))
    return _sum(numbers)


def _sum(numbers: list[Number]) -> Value:
    try:
        return real(fsum(numbers))
    except OverflowError as error:
        raise WrongValue("a number is not finite") from error


def _subtract(call: Call) -> Value:
    return _number_value(call.number(0) - call.number(1))


def _divide(call: Call) -> Value:
    divisor = call.number(1)
    if divisor == 0:
        raise WrongValue("Divide cannot divide by zero")
    return real(call.number(0) / divisor)


# Operations on numbers: Int with Int is Int, any other two are Float.
NUMBERS = {
    "Multiply": Builtin(_multiply, most=None),
    "Add": Builtin(_add, most=None),
    "Subtract": Builtin(_subtract, least=2, most=2),
    "Divide": Builtin(_divide, least=2, most=2),
    "GreaterThan": Builtin(lambda call: call.number(0) > call.number(1), least=2, most=2),
    "LessThan": Builtin(lambda call: call.number(0) < call.number(1), least=2, most=2),
}


def _hash(call: Call) -> Value:
    """Return the SHA-256 of the inputs, concatenated: a String as UTF-8, Bytes and a Hash32 as they
    are, others as `encode` writes them. For a single Array or Map the result equals its digest.
    """
    found = sha256()
    for value in call.inputs:
        found.update(_raw(value))
    return Hash32(found.digest())


def _raw(value: Value) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case Hash32(value=raw):
            return raw
        case _:
            return encode(value)


def _sign(call: Call) -> Value:
    return _signature(call)


def _verify(call: Call) -> Value:
    signature = call.inputs[1]
    if not isinstance(signature, bytes):
        raise WrongValue("Verify needs the Bytes of a signature as input 2")
    return hmac.compare_digest(_signature(call), signature)


def _signature(call: Call) -> bytes:
    """Return the HMAC-SHA256 (RFC 2104) of the first input's encoding, so that values of different
    kinds never share a signature. Raises Unavailable without a key.
    """
    if not call.host.key:
        raise Unavailable(
            f"{call.op} needs a key, and this run has none",
            cure="give the run a key (`[graph] key_file`), or leave signatures out",
        )
    return hmac.digest(call.host.key, encode(call.inputs[0]), "sha256")


# Operations that hash and sign values.
PROOFS = {
    "Hash": Builtin(_hash, most=None),
    "Sign": Builtin(_sign),
    "Verify": Builtin(_verify, least=2, most=2),
}


_GREETINGS = ("hi", "hello", "hey", "good morning", "good evening", "hallo")
_REQUESTS = ("please", "can you", "could you", "would you")
_OTHER = "other"
_MOST = MAX_SIZE // ENTRY  # parts of a text


def _concat(call: Call) -> Value:
    separator = call.text_param("separator", "")
    parts = [call.text(index) for index in range(len(call.inputs))]
    size = sum(map(len, parts)) + len(separator) * (len(parts) - 1)
    if size > MAX_SIZE:
        raise LimitReached(f"Concat would make {size} characters, and {MAX_SIZE} is the most")
    return separator.join(parts)


def _split(call: Call) -> Value:
    separator = call.text_param("separator", " ")
    if not separator:
        raise WrongValue("Split needs a separator that is not empty")
    return Array(_few(call.text().split(separator, _MOST)))


def _first_word(call: Call) -> Value:
    words = call.text().split(maxsplit=1)
    return words[0] if words else ""


def _other_words(call: Call) -> Value:
    return Array(_few(call.text().split(maxsplit=_MOST))[1:])


def _few(parts: list[str]) -> list[str]:
    if len(parts) > _MOST:
        raise LimitReached(f"the text has more than {_MOST} parts")
    return parts


def _intent(call: Call) -> Value:
    """Return the first class that the text has a sign of, among `classes` if those are given;
    `other` if there is none.
    """
    text = " ".join(call.text().casefold().split())
    classes = call.params.get("classes")
    known = set(classes) if isinstance(classes, Array) else None
    if known is None and classes is not None:
        raise WrongValue("the parameter 'classes' of ClassifyIntent is an Array of Strings")
    for name, fits in (
        ("greeting", _begins(text, _GREETINGS)),
        ("question", "?" in text),
        ("request", _begins(text, _REQUESTS) or any(f" {sign} " in text for sign in _REQUESTS[1:])),
        ("statement", True),
    ):
        if fits and (known is None or name in known):
            return name
    return _OTHER


def _begins(text: str, signs: tuple[str, ...]) -> bool:
    return any(
        text.startswith(sign) and not text[len(sign) : len(sign) + 1].isalnum() for sign in signs
    )


def _length(call: Call) -> Value:
    found = call.inputs[0]
    if isinstance(found, str | bytes):
        return len(found)
    return len(call.map()) if not isinstance(found, Array) else len(found)


# Operations on Strings.
TEXTS = {
    "StartsWith": Builtin(
        lambda call: call.text().startswith(call.text_param("prefix")),
        params=frozenset({"prefix"}),
    ),
    "EndsWith": Builtin(
        lambda call: call.text().endswith(call.text_param("suffix")), params=frozenset({"suffix"})
    ),
    "Contains": Builtin(
        lambda call: call.text_param("pattern") in call.text(), params=frozenset({"pattern"})
    ),
    "ExtractFirstWord": Builtin(_first_word),
    "ExtractParams": Builtin(_other_words),
    "Concat": Builtin(_concat, most=None, params=frozenset({"separator"})),
    "Split": Builtin(_split, params=frozenset({"separator"})),
    "Trim": Builtin(lambda call: call.text().strip()),
    "ToLower": Builtin(lambda call: call.text().lower()),
    "ToUpper": Builtin(lambda call: call.text().upper()),
    "Length": Builtin(_length, is_light=True),
    "ClassifyIntent": Builtin(_intent, params=frozenset({"classes"})),
}


MAX_DEPTH, MAX_RECALLED = 8, 1000
_DEPTH, _RECALLED = 3, 50
_STATEMENT = ("subject", "predicate", "object")


def _timestamp(call: Call) -> Value:
    """Return the milliseconds since 1970 in UTC."""
    if call.host.clock is None:
        raise _missing(call, "a clock")
    return int(call.host.clock.now().timestamp() * 1000)


def _load(call: Call) -> Value:
    """Return the value under a key: as saved in this run, else as kept from runs
    before, else Null.
    """
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
    """Record a statement, to be stored after the run, and return it as a Map. The input is a Map of
    subject, predicate, object and optional confidence; or two inputs are subject and object, and
    parameters the others.
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
    return _as_map(statement)


def _recall(call: Call) -> Value:
    """Return the statements stored around a concept before this run: an Array of Maps, highest
    confidence first.
    """
    if call.host.memories is None:
        raise _missing(call, "a memory")
    limit = call.whole_param("limit", _RECALLED, 1, MAX_RECALLED)
    found = call.host.memories.recall(
        call.text(),
        predicate=call.text_param("predicate", ""),
        depth=call.whole_param("depth", _DEPTH, 1, MAX_DEPTH),
        limit=limit,
    )
    return Array([_as_map(statement) for statement in found[:limit]])


def _as_map(statement: SemanticTuple) -> Map:
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


# Operations on the outside: time, states and memories. Changes are made after a successful run.
OUTSIDE = {
    "Timestamp": Builtin(_timestamp, least=0, most=0),
    "LoadState": Builtin(_load),
    "SaveState": Builtin(_save, least=2, most=2),
    "MemoryStore": Builtin(_remember, most=2, params=frozenset({"predicate", "confidence"})),
    "MemoryRecall": Builtin(_recall, params=frozenset({"predicate", "depth", "limit"})),
}


BUILTINS = MappingProxyType({**TEXTS, **HOLDERS, **NUMBERS, **LOGIC, **PROOFS, **OUTSIDE})
