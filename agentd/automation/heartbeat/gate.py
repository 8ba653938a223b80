"""Decides whether a beat runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from agentd.automation.heartbeat.hours import Hours
from agentd.core.beat import Reason
from agentd.core.checklist import Checklist, Item
from agentd.core.errors import WorkspaceError


class GateView(Struct, frozen=True):
    """The input of the gates. `due` are the checklist's dated entries whose time has come."""

    now: datetime
    hours: Hours
    is_on: bool
    paused_until: datetime | None
    is_idle: bool  # the owner has been silent for longer than `[heartbeat] pause_after_idle`
    breaker_open: bool
    over_budget: bool
    unreadable: (
        WorkspaceError | None
    )  # why HEARTBEAT.md cannot be read; the checklist is empty then
    checklist: Checklist
    due: tuple[Item, ...]
    busy: bool


class Run(Struct, frozen=True):
    """The beat runs; `due` are the dated entries to check beside the open ones."""

    due: tuple[Item, ...]


class Skip(Struct, frozen=True):
    """The beat does not run."""

    reason: Reason


class Unreadable(Struct, frozen=True):
    """The beat alerts the owner that HEARTBEAT.md cannot be read, without a model call."""

    error: WorkspaceError
    reason: Reason = Reason.ALERT


Decision = Run | Skip | Unreadable
_Shut = Skip | Unreadable


def decide(view: GateView, *, force: bool = False) -> Decision:
    """Return the decision of the first gate that is shut, else Run. `force` ignores all gates but
    those of the budget, the file and a busy session.
    """
    decisive = (
        shut
        for name, gate in _GATES.items()
        if (name in _NEVER_FORCED or not force) and (shut := gate(view)) is not None
    )
    return next(decisive, Run(view.due))


def answers(view: GateView) -> dict[str, Reason | None]:
    """Return the answer of every gate on its own, in the order in which they are checked: the
    reason if it is shut, None if it is open.
    """
    shut = ((name, gate(view)) for name, gate in _GATES.items())
    return {name: None if found is None else found.reason for name, found in shut}


def _switch(view: GateView) -> _Shut | None:
    return None if view.is_on else Skip(Reason.DISABLED)


def _pause(view: GateView) -> _Shut | None:
    is_paused = view.paused_until is not None and view.now < view.paused_until
    return Skip(Reason.PAUSED) if is_paused else None


def _idle(view: GateView) -> _Shut | None:
    return Skip(Reason.IDLE) if view.is_idle else None


def _hours(view: GateView) -> _Shut | None:
    reason = view.hours.closed(view.now)
    return None if reason is None else Skip(reason)


def _breaker(view: GateView) -> _Shut | None:
    return Skip(Reason.BREAKER_OPEN) if view.breaker_open else None


def _budget(view: GateView) -> _Shut | None:
    return Skip(Reason.BUDGET) if view.over_budget else None


def _file(view: GateView) -> _Shut | None:
    return None if view.unreadable is None else Unreadable(view.unreadable)


def _entries(view: GateView) -> _Shut | None:
    if view.unreadable is None and view.checklist.is_empty:
        return Skip(Reason.EMPTY_CHECKLIST)
    is_work = view.unreadable is not None or view.checklist.has_open or view.due
    return None if is_work else Skip(Reason.NOTHING_DUE)


def _busy(view: GateView) -> _Shut | None:
    return Skip(Reason.BUSY) if view.busy else None


# In the order in which a user would name the reasons. "file" comes before "entries": an unreadable
# file may contain entries, so it leads to an alert and not to a skip.
_GATES: Mapping[str, Callable[[GateView], _Shut | None]] = {
    "on": _switch,
    "pause": _pause,
    "idle": _idle,
    "hours": _hours,
    "breaker": _breaker,
    "budget": _budget,
    "file": _file,
    "entries": _entries,
    "busy": _busy,
}
_NEVER_FORCED = frozenset({"budget", "file", "busy"})
