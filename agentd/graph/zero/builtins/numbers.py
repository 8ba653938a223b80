"""Operations on numbers: Int with Int is Int, any other two are Float."""

from __future__ import annotations

from math import fsum, prod

from agentd.graph.zero.call import Builtin, Call, Number
from agentd.graph.zero.faults import WrongValue
from agentd.graph.zero.plain import real, whole
from agentd.graph.zero.values import Confidence, Value


def _numbers(call: Call) -> list[Number]:
    return [call.number(index) for index in range(len(call.inputs))]


def _checked(made: Number) -> Value:
    return whole(made) if isinstance(made, int) else real(made)


def _multiply(call: Call) -> Value:
    """The product; of Confidences alone a Confidence."""
    numbers = _numbers(call)
    if all(isinstance(found, Confidence) for found in call.inputs):
        return Confidence(float(prod(numbers)))
    product: Number = 1
    for number in numbers:
        product *= number
        _checked(product)
    return product


def _add(call: Call) -> Value:
    numbers = _numbers(call)
    if all(isinstance(number, int) for number in numbers):
        return _checked(sum(numbers))
    return _sum(numbers)


def _sum(numbers: list[Number]) -> Value:
    try:
        return real(fsum(numbers))
    except OverflowError as error:
        raise WrongValue("a number is not finite") from error


def _subtract(call: Call) -> Value:
    return _checked(call.number(0) - call.number(1))


def _divide(call: Call) -> Value:
    divisor = call.number(1)
    if divisor == 0:
        raise WrongValue("Divide cannot divide by zero")
    return real(call.number(0) / divisor)


NUMBERS = {
    "Multiply": Builtin(_multiply, most=None),
    "Add": Builtin(_add, most=None),
    "Subtract": Builtin(_subtract, least=2, most=2),
    "Divide": Builtin(_divide, least=2, most=2),
    "GreaterThan": Builtin(lambda call: call.number(0) > call.number(1), least=2, most=2),
    "LessThan": Builtin(lambda call: call.number(0) < call.number(1), least=2, most=2),
}
