"""Operations on Strings."""

from __future__ import annotations

from agentd.graph.zero.call import Builtin, Call
from agentd.graph.zero.faults import LimitReached, WrongValue
from agentd.graph.zero.values import ENTRY, MAX_SIZE, Array, Value

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
    """The first class whose sign the text shows. `classes` are those that may be answered; what is
    none of them is `other`.
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
