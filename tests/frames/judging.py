"""What a daemon owes to whoever sent a line, by docs/socket.md, and whether it gave that."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL, WITHDRAWN = -32603, -32800
_DEPTH = 64
_HALF = re.compile("[\ud800-\udfff]")
_TOO_LONG = "the frame is longer than"  # which says that the line could not be read for its id
_SHOWN = 300  # letters of what did not fit
_LONGEST = 64  # times as long as a line may be, after which a connection ends

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Owed:
    """What a line is owed: an answer to the call `id`, an error that names none, or nothing.

    `code` is that of the error, None where it is the daemon's to say how it ends. `closes` says
    that the connection ends behind it, `perhaps` that it may. `call` is the method and its params,
    if it is a call.
    """

    kind: str
    id: Any = None
    code: int | None = None
    closes: bool = False
    perhaps: bool = False
    call: tuple[str, Json] | None = None


NOTHING = Owed("nothing")


def owed(line: bytes, longest: int) -> Owed:
    """What is owed for a line, of which one may have `longest` bytes."""
    if len(line) > longest:
        return Owed("too long", code=INVALID_REQUEST, closes=len(line) > _LONGEST * longest)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return Owed("error", code=PARSE_ERROR, closes=True)
    try:
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_none, parse_int=_int, parse_float=_float
        )
        _look_through(value, 0)
    except (ValueError, RecursionError):
        return Owed("error", code=PARSE_ERROR)
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return Owed("error", code=INVALID_REQUEST)
    return _of_frame(value)


def _of_frame(frame: Json) -> Owed:
    method, call_id, params = frame.get("method"), frame.get("id"), frame.get("params", {})
    greets = method == "initialize"
    if "id" in frame and type(call_id) not in (int, str):
        return Owed("error", code=INVALID_REQUEST, closes=greets)
    if "method" not in frame:
        is_answer = "id" in frame and ("result" in frame) != ("error" in frame)
        return NOTHING if is_answer else Owed("error", code=INVALID_REQUEST)
    if not isinstance(method, str):
        return Owed("error", code=INVALID_REQUEST)
    if not isinstance(params, dict):
        kind = "error" if "id" not in frame else "answer"
        return Owed(kind, call_id, INVALID_PARAMS, closes=greets)
    if "id" in frame:
        return Owed("answer", call_id, call=(method, params))
    return Owed("nothing", perhaps=greets and bool(params.get("_meta")))


def _once(pairs: Sequence[tuple[str, Any]]) -> Json:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def _none(_: str) -> Any:
    raise ValueError


def _int(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**63:
        raise ValueError
    return value


def _float(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError
    return value


def _look_through(value: Any, depth: int) -> None:
    """Raises ValueError for nesting that is too deep, and for halves of surrogate pairs."""
    if isinstance(value, str):
        if _HALF.search(value):
            raise ValueError
        return
    if not isinstance(value, dict | list):
        return
    if depth >= _DEPTH:
        raise ValueError
    for inner in value if isinstance(value, list) else (*value, *value.values()):
        _look_through(inner, depth + 1)


@dataclass
class Judge:
    """Holds what one connection gets against what is owed to it. `wrong` is what does not fit."""

    longest: int
    wrong: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    ends: bool = False  # something was sent after which it closes
    may_end: bool = False
    _calls: dict[Any, list[tuple[int | None, str, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _errors: deque[int] = field(default_factory=deque)
    _too_long: int = 0

    def send(self, line: bytes, known: Owed | None = None) -> None:
        """A line is sent. Behind one that ends the connection nothing is owed."""
        if self.ends:
            return
        one = known or owed(line, self.longest)
        self.ends, self.may_end = one.closes, self.may_end or one.perhaps
        match one.kind:
            case "answer":
                method = one.call[0] if one.call else ""
                self._calls[_key(one.id)].append((one.code, method, line[:_SHOWN]))
            case "error":
                assert one.code is not None
                self._errors.append(one.code)
            case "too long":
                self._too_long += 1

    def hear(self, frame: Json) -> None:
        """A frame has come that is no call and no notification."""
        error = frame.get("error")
        if ("result" in frame) == ("error" in frame) or frame.get("jsonrpc") != "2.0":
            self.wrong.append(f"neither a result nor an error: {_short(frame)}")
            return
        if error is not None:
            if error["code"] == INTERNAL:
                self.wrong.append(f"a fault inside the daemon: {_short(frame)} {self._of(frame)}")
            if error["message"].startswith(_TOO_LONG):
                self._count(frame, self._too_long > 0)
                self._too_long -= 1
                return
        if frame["id"] is None:
            self._hear_error(frame)
        else:
            self._hear_answer(frame)

    def end(self) -> None:
        """The daemon has closed."""
        if missing := self.waits_for():
            self.wrong.append(f"closed and owes {missing}")

    def waits_for(self) -> list[str]:
        """What is still owed."""
        calls = [f"{method} {key!r}" for key, all_ in self._calls.items() for _, method, _ in all_]
        return [*calls, *map(str, self._errors), *["a line that is too long"] * self._too_long]

    def only_open(self, method: str) -> list[Any]:
        """The ids of open calls of the method, if nothing else is owed."""
        if self._errors or self._too_long:
            return []
        open_ = [(key[1], one[1]) for key, all_ in self._calls.items() for one in all_]
        return [call_id for call_id, of in open_ if all(name == method for _, name in open_)]

    def _hear_error(self, frame: Json) -> None:
        if self.may_end and frame["error"]["code"] == INVALID_REQUEST and not self._errors:
            self.ends = True
            self.answers["error"] += 1
            return
        wanted = self._errors.popleft() if self._errors else None
        self._count(frame, wanted == frame["error"]["code"], f", not {wanted}")

    def _hear_answer(self, frame: Json) -> None:
        waiting = self._calls.get(_key(frame["id"]), [])
        code = frame.get("error", {}).get("code")
        fitting = [one for one in waiting if one[0] is not None and one[0] == code]
        fitting = fitting or [one for one in waiting if one[0] is None]
        self._count(frame, bool(fitting))
        if fitting:
            waiting.remove(fitting[0])
            if not waiting:
                del self._calls[_key(frame["id"])]

    def _count(self, frame: Json, fits: bool, why: str = "") -> None:
        self.answers["error" if "error" in frame else "result"] += 1
        if not fits:
            self.wrong.append(f"not owed: {_short(frame)}{why}")

    def _of(self, frame: Json) -> list[tuple[int | None, str, bytes]]:
        return self._calls.get(_key(frame["id"]), [])


def _key(call_id: Any) -> tuple[str, Any]:
    return type(call_id).__name__, call_id


def _short(frame: Json) -> str:
    return json.dumps(frame)[:_SHOWN]
