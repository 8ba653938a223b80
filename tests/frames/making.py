"""Frames of clients by chance: good ones, and what becomes of them when they are damaged or odd.

The same seed makes the same ones. A good call is taken from the examples; a change is made to what
it says (a key gone, a value of another type), to how it says it (a key twice, a number of 5,000
digits), or to its bytes (cut, doubled, flipped).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.frames.examples import NOTICES, Example

# Every class of code points, by its first and last.
_CLASSES = (
    *((0x00, 0x1F), (0x20, 0x7E), (0x7F, 0x9F), (0xA0, 0x2FF), (0x300, 0x36F), (0x590, 0x8FF)),
    *((0x900, 0xDFF), (0x1100, 0x11FF), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F)),
    *((0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xD800, 0xDBFF), (0xDC00, 0xDFFF), (0xE000, 0xF8FF)),
    *((0xFDD0, 0xFDEF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFF0, 0xFFFF), (0x1D400, 0x1D7FF)),
    *((0x1F1E6, 0x1F1FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE007F)),
    *((0xE0100, 0xE01EF), (0xF0000, 0xF00FF), (0x10FFFE, 0x10FFFF)),
)
_NUMBERS = (
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616"),
    *("-9223372036854775809", "1e308", "1e309", "-1e999", "5e-324", "-0", "-0.0", "0.1", "1E+2"),
    *("2147483648", "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "١"),
    *("1000000000000000000000000", "9" * 5000, "1" + "0" * 400, "0." + "1" * 5000),
)
_TEXTS = (
    *("", " ", "\n", "\x00", "main", "MAIN", "chat:x", "group:y", "isolated:z", "chat:", "..", "/"),
    *(
        "../../etc/passwd",
        "memory/2026-01-01.md",
        "MEMORY.md",
        "0",
        "-1",
        "1e5",
        "9" * 5000,
        "null",
    ),
    *("true", "[secret:aws]", "%s%n", "${HOME}", "'; DROP TABLE rows; --", "<script>", "\\", '"'),
    *(
        "2026-02-30",
        "25:61",
        "P1D",
        "1d",
        "FIND path FROM user",
        "((((((((",
        "a" * 300,
        "é",
        "e\u0301",
    ),
    *("[forgotten]", "NO_REPLY", "/stop", "/compact", "* * * * *", "0 9 * * 1-5", "Europe/Berlin"),
)
_VALUES = (
    *("null", "true", "false", "0", "1", "-1", "2", "99", "1.5", "-1e9", "1e300", "[]", "{}"),
    *("[null]", "[[]]", '{"": ""}', '[1, "a"]', '{"type": "text"}', '{"_meta": null}', "[{}]"),
    *('["main"]', '{"key": "main"}'),
)
_METHODS = (
    *("", " ", "initialize", "INITIALIZE", "session", "session/", "session/prompt ", "_agentd/"),
    *("_agentd/nothing", "$/", "rpc.discover", "__init__", "session/../status", "session/update"),
    *("session/request_permission", "_agentd/alert", "x" * 300, "a\x00b", "\u202emain"),
)
_WORDS = (
    *(b"", b" ", b"\t", b"nonsense", b"null", b"true", b"3", b'"text"', b"[]", b"{}", b"{", b"}"),
    *(
        b"[1,2",
        b'{"a":}',
        b"{'a':1}",
        b'{"a":1,}',
        b"// comment",
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"\r",
    ),
    *(b"GET / HTTP/1.1\r", b"Content-Length: 5\r", b'{"jsonrpc":"2.0"}', b"\x1b[2J", b"\x7fELF"),
    *(
        b'"\\ud800"',
        b'"\\',
        b"1e5",
        b"-",
        b"[" * 64 + b"]" * 64,
        b"[" * 65 + b"]" * 65,
        b"[" * 20_000,
    ),
    *(b'{"a":' * 3000, b"[[[[{{{{", b'{"jsonrpc":"2.0","id":1,"result":1,"error":2}'),
)
_HALF = re.compile("[\ud800-\udfff]")
_RAW = re.compile(r'"@raw(\d+)@"')

Json = dict[str, Any]


class Maker:
    """Each example once as it is, then lines by chance. `weigh` says how often the examples of a
    method are taken, 1 being usual; a line may have `longest` bytes, and hardly any has more.
    """

    def __init__(
        self, seed: int, examples: Sequence[Example], longest: int, weigh: Callable[[str], float]
    ) -> None:
        self.chance = random.Random(seed)
        self._longest = longest
        self._examples = [(method, json.dumps(params)) for method, params in examples]
        self._weights = [weigh(method) for method, _ in self._examples]
        self._notices = [(method, json.dumps(params)) for method, params in NOTICES]
        self._number = 0
        self._raw: list[str] = []
        self._drawn = self._examples[::-1]
        self._kinds: list[Callable[[], bytes]] = [self._plain] * len(examples)

    def line(self) -> bytes:
        """The next one, without its end; a damaged one may hold an end of its own."""
        if not self._kinds:  # drawn by the thousand, which is quicker than one by one
            kinds = (
                self._good,
                self._changed,
                self._damaged,
                self._word,
                self._spoken,
                self._other,
            )
            self._kinds = self.chance.choices(kinds, (10, 50, 22, 8, 6, 4), k=1000)
        return self._kinds.pop()()

    def _frame(self) -> Json:
        if not self._drawn:
            self._drawn = self.chance.choices(self._examples, self._weights, k=1000)
        method, params = self._drawn.pop()
        self._number += 1
        return {
            "jsonrpc": "2.0",
            "id": self._number,
            "method": method,
            "params": json.loads(params),
        }

    def _plain(self) -> bytes:
        return self._written(self._frame())

    def _good(self) -> bytes:
        frame = self._frame()
        if self.chance.random() < 0.2:
            frame["id"] = self.chance.choice([f"call-{self._number}", -self._number, self.text()])
        return self._written(frame)

    def _changed(self) -> bytes:
        frame = self._frame()
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            # Mostly in the params: what is wrong outside them is soon refused.
            inside = self.chance.random() < 0.75 and frame.get("params")
            self._change(inside if isinstance(inside, dict) else frame)
        return self._written(frame)

    def _change(self, frame: Json) -> None:
        holders = list(_holders(frame))
        holder = self.chance.choice(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys or self.chance.random() < 0.1:
            self._add(holder)
            return
        key = self.chance.choice(keys)
        match self.chance.randrange(8):
            case 0:
                del holder[key]
            case 1:
                holder[key] = self._token(self.chance.choice(_NUMBERS))
            case 2 | 3:
                holder[key] = self.text()
            case 4:
                holder[key] = self._nested(holder[key])
            case 5 if isinstance(holder, dict):
                holder[self.text() if self.chance.random() < 0.5 else str(key).upper()] = (
                    holder.pop(key)
                )
            case 6 if isinstance(holder, dict) and isinstance(key, str):
                again = self._token(f"0,{json.dumps(key)}:{json.dumps(holder[key])}")
                holder[key] = again  # the key stands there twice
            case _:
                holder[key] = self._value()

    def _add(self, holder: Any) -> None:
        value = self._value() if self.chance.random() < 0.8 else self.text()
        if isinstance(holder, list):
            holder.insert(self.chance.randrange(len(holder) + 1), value)
        else:
            holder[self.chance.choice(("_meta", "colour", self.text(), "id", "method"))] = value

    def _value(self) -> Any:
        return json.loads(self.chance.choice(_VALUES))

    def _nested(self, value: Any) -> Any:
        depth = self.chance.choice((1, 2, 30, 59, 60, 61, 62, 63, 64, 65, 300, 20_000))
        if depth < 100:
            for _ in range(depth):
                value = [value] if self.chance.random() < 0.5 else {"a": value}
            return value
        opening, closing = self.chance.choice((("[", "]"), ('{"a":', "}")))
        return self._token(opening * depth + "1" + closing * depth)

    def text(self) -> str:
        """A string: a known one, or characters of one class or several."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.4:
            return chance.choice(_TEXTS)
        if kind < 0.97:
            length = chance.choice((1, 1, 2, 5, 20))
            if kind < 0.7:
                first, last = chance.choice(_CLASSES)
                return "".join(chr(chance.randint(first, last)) for _ in range(length))
            ends = chance.choices(_CLASSES, k=length)
            return "".join(chr(chance.randint(first, last)) for first, last in ends)
        piece = chance.choice(("x", "\u0000", "é", "\U0001f600", "\ud800", "a b ", '"\\', "\n- "))
        return piece * chance.choice((500, 5_000, 5_000, 30_000))

    def _damaged(self) -> bytes:
        line = bytearray(self._plain())
        for _ in range(self.chance.choice((1, 1, 1, 2, 4))):
            self._damage(line)
        return bytes(line)

    def _damage(self, line: bytearray) -> None:
        chance = self.chance
        at = chance.randrange(len(line) + 1)
        end = min(len(line), at + chance.choice((1, 1, 2, 8, 40)))
        match chance.randrange(8):
            case 0:
                del line[at:]
            case 1:
                del line[at:end]
            case 2:
                line[at:at] = line[at:end]
            case 3:
                line[at:at] = bytes([chance.choice(b'{}[]",:\\0123456789eE+-. \t\r\n\x00aunt/')])
            case 4 if at < len(line):
                line[at] = chance.randrange(0x20, 0x7F)
            case 5 if at < len(line) and chance.random() < 0.3:
                line[at] ^= 1 << chance.randrange(8)
            case 6:
                line += line[at:]
            case _:
                line[at:at] = chance.choice((b" ", b"\t", b"  ", b"\\u0041", b"\\/", b"\\x", b'""'))

    def _word(self) -> bytes:
        return self.chance.choice(_WORDS)

    def _spoken(self) -> bytes:
        """What wants no answer: notices, and answers to calls that were never made."""
        chance = self.chance
        if chance.random() < 0.5:
            method, params = chance.choice(self._notices)
            notice: Json = {"jsonrpc": "2.0", "method": method, "params": json.loads(params)}
            if "requestId" in notice["params"]:
                ids = (self._number, str(self._number), self.text(), 1.0, None, [])
                notice["params"]["requestId"] = chance.choice(ids)
            if chance.random() < 0.3:
                self._change(notice)
            return self._written(notice)
        known = chance.choice(("agentd-1", f"agentd-{chance.randrange(99)}", 1, self.text()))
        answer: Json = {"jsonrpc": "2.0", "id": known, "result": self._value()}
        if chance.random() < 0.4:
            answer["error"] = answer.pop("result")
        return self._written(answer)

    def _other(self) -> bytes:
        """Lines that are not one call: batches, two calls, other methods, no UTF-8, too long
        ones.
        """
        frame = self._frame()
        match self.chance.randrange(8):
            case 0:
                return b"[" + self._written(frame) + b"," + self._plain() + b"]"
            case 1:
                return self._written(frame) + self._plain()
            case 2 | 3 | 4:
                frame["method"] = self.chance.choice((*_METHODS, self.text()))
                return self._written(frame)
            case 5 if self.chance.random() < 0.2:
                return self.chance.choice((b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b"a\x00\x80"))
            case 6 if self.chance.random() < 0.2:
                times = self.chance.choices((1, 2, 65), (8, 8, self._longest <= 1 << 16))[0]
                frame["params"]["more"] = "x" * (times * self._longest)
                return self._written(frame)
            case _:
                return self._written(frame) + b"\r"

    def _token(self, text: str) -> str:
        """What stands for JSON that `json` would not write."""
        self._raw.append(text)
        return f"@raw{len(self._raw) - 1}@"

    def _written(self, frame: Json) -> bytes:
        text = json.dumps(frame, ensure_ascii=self.chance.random() < 0.5)
        if _HALF.search(text):  # which UTF-8 cannot hold
            text = json.dumps(frame)
        if self._raw:
            raw, self._raw = self._raw, []
            text = _RAW.sub(lambda found: raw[int(found[1])], text)
        return text.encode()


def _holders(value: Any) -> Any:
    """Every object and list in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)
