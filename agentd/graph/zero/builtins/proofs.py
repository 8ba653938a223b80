"""Operations that name and sign values."""

from __future__ import annotations

import hmac
from hashlib import sha256

from agentd.graph.zero.call import Builtin, Call
from agentd.graph.zero.faults import Unavailable, WrongValue
from agentd.graph.zero.values import Hash32, Value, encode


def _hash(call: Call) -> Value:
    """SHA-256 of the inputs one behind the other: a String as UTF-8, Bytes and a Hash32 as they are,
    others as `encode` writes them. A single Array or Map is so named by its digest.
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
    """HMAC-SHA256 (RFC 2104) of the encoding of the first input, so that values of different kinds
    never share a signature.
    """
    if not call.host.key:
        raise Unavailable(
            f"{call.op} needs a key, and this run has none",
            cure="give the run a key (`[graph] key_file`), or leave signatures out",
        )
    return hmac.digest(call.host.key, encode(call.inputs[0]), "sha256")


PROOFS = {
    "Hash": Builtin(_hash, most=None),
    "Sign": Builtin(_sign),
    "Verify": Builtin(_verify, least=2, most=2),
}
