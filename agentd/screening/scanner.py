"""What deserves a warning in text that goes into prompts. Pure; time is in proportion to the text.

It is no boundary. What a model may write, and what of others it is shown, is decided by where the
text comes from; this is what the user is told beside the question.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from agentd.domain.suspicion import Severity, Suspicion
from agentd.screening.hidden import hidden
from agentd.screening.lookalikes import disguised
from agentd.screening.phrases import phrases

_MOST = 40  # of one reason; more say nothing new
_NEAR = 4_096  # characters before an addition that it may complete to something suspicious


def scan(text: str) -> tuple[Suspicion, ...]:
    """All that is suspicious, in the order in which it stands there; each reason once a line."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    told: dict[tuple[str, int], Suspicion] = {}
    count = Counter[str]()
    for severity, reason, start in _places(text):
        line = bisect_left(lines, start + 1)
        if (reason, line) in told or count[reason] == _MOST:
            continue
        count[reason] += 1
        end = lines[line] if line < len(lines) else len(text)
        key = f"{reason} {text[lines[line - 1] : end].strip()}"
        column = start - lines[line - 1] + 1
        told[reason, line] = Suspicion(severity, reason, line, column, key)
    return tuple(sorted(told.values(), key=lambda s: (s.line, s.column)))


def scan_change(before: str, after: str) -> tuple[Suspicion, ...]:
    """What is suspicious in `after` and was not in `before`; what a change completes counts. Of a text
    that was only added to, that is looked for near the addition.
    """
    start = before.rfind("\n", 0, max(0, len(before) - _NEAR)) + 1
    if not start or not after.startswith(before):
        return tuple(_fresh(before, after))
    lines = before.count("\n", 0, start)
    near = _fresh(before[start:], after[start:])
    return tuple(replace(suspicion, line=suspicion.line + lines) for suspicion in near)


def _fresh(before: str, after: str) -> Iterator[Suspicion]:
    known = Counter(suspicion.key for suspicion in scan(before)) if before else Counter[str]()
    for suspicion in scan(after):
        if known[suspicion.key]:
            known[suspicion.key] -= 1
        else:
            yield suspicion


def _places(text: str) -> Iterator[tuple[Severity, str, int]]:
    for reason, start in hidden(text):
        yield Severity.HIGH, reason, start
    for reason, start in (*disguised(text), *phrases(text)):
        yield Severity.LOW, reason, start
