"""Failpoints: named places where a test can make the process die or fail.

`AGENTD_FAILPOINT=name[:count[:action]][,…]` arms points when this module is imported. The action
happens on the count-th hit (default 1): `kill` (SIGKILL to ourselves, the default), `raise`
(FailpointError), `enospc` (OSError ENOSPC), `stall` (200 ms of computing). Unarmed, a hit costs one
dictionary look-up. `NAMES` lists every name, so a test can go through all of them.
"""

from __future__ import annotations

import errno
import os
import signal
import time

NAMES: tuple[str, ...] = (
    "image.stored",  # a message's images are durable, the message is not
    "turn.received",  # the request is durable, `accepted` not yet sent
    "turn.begun",  # the user row is durable, the model not yet called
    "turn.streaming",  # the model has begun to answer
    "turn.answered",  # the model has answered, nothing of the answer is durable
    "turn.assistant_stored",  # the assistant message is durable, no tool has run
    "tool.planned",  # a tool is about to make its intent durable
    "tool.intended",  # the intent is durable, the effect has not begun
    "file.temp_written",  # the new content is in a temporary file
    "file.replaced",  # the rename is done, the directory is not synced
    "tool.done",  # the effect is done, the result is not durable
    "tool.settled",  # the result is durable
    "turn.results_stored",  # all results of one message are in the transcript
    "turn.finished",  # the last message and the end of the turn are durable, nobody was told
    "flush.begun",  # the flush is recorded as running
    "flush.done",  # the silent turn ended, its coverage is not recorded
    "compaction.flushed",  # coverage is recorded, the summary not yet asked for
    "compaction.summarised",  # the summary is there, nothing is swapped
    "compaction.swapped",  # the new context is durable
    "session.deleted",  # the store holds no byte of the session, other places still hold its words
    # rows or what is indexed of them are deleted, their bytes still stand on the disk
    "store.deleted",
    "beat.begun",  # the beat is recorded as running
    "beat.verdict",  # the reply is judged, no alert is stored
    "job.begun",  # the run of a job's slot is recorded as running
    "job.verdict",  # the reply is judged, no alert is stored
    "facts.written",  # the page of facts is changed, its rows are not
    # the graph's chain has an entry that its head does not count, the tables have nothing
    "graph.chained",
    "graph.written",  # the graph's tables have new facts, its text does not
    "erasure.begun",  # what is to be erased is recorded, nothing of it is erased
    "erasure.place_done",  # one place is done, perhaps not the next
    "erasure.done",  # all places are done, the record still exists
    "alert.stored",  # the alert is durable, no sink has it
    "alert.sent",  # a sink took it, the delivery is not recorded
)


class FailpointError(RuntimeError):
    """An armed failpoint was told to raise."""


def _parse(text: str) -> dict[str, tuple[int, str]]:
    armed: dict[str, tuple[int, str]] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = item.partition(":")
        count, _, action = rest.partition(":")
        if name not in NAMES:
            msg = f"AGENTD_FAILPOINT names {name!r}, which is not a failpoint"
            raise ValueError(msg)
        armed[name] = (int(count or 1), action or "kill")
    return armed


_armed: dict[str, tuple[int, str]] = _parse(os.environ.get("AGENTD_FAILPOINT", ""))


def arm(spec: str) -> None:
    """Replace the armed points by those in `spec` (the syntax of the environment variable); `""`
    disarms all.
    """
    _armed.clear()
    _armed.update(_parse(spec))


def hit(name: str) -> None:
    """Pass the point `name`. If the point is armed and its count is reached, perform its action;
    else do nothing. May raise FailpointError or OSError (ENOSPC), or kill the process.
    """
    if name not in _armed:
        return
    left, action = _armed[name]
    if left > 1:
        _armed[name] = (left - 1, action)
        return
    del _armed[name]
    if action == "raise":
        raise FailpointError(name)
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    if action == "stall":
        _stall(0.2)
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _stall(seconds: float) -> None:
    """Burn this thread's CPU time for `seconds`."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
