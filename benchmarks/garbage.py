"""The search for garbage, as seldom as in the daemon."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from agentd.app.daemon import GARBAGE


@contextmanager
def as_in_the_daemon() -> Iterator[None]:
    """Meanwhile search after as many new objects as the daemon does, and not in what is there by
    now.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
