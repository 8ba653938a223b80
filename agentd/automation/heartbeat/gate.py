"""Decides whether a beat runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.automation.heartbeat.hours import Hours
from agentd.core.beat import Reason
from agentd.core.checklist import Checklist, Item
from agentd.core.errors import WorkspaceError


@dataclass(frozen=True, slots=True)
class GateView:
    """What the gate looks at. `due` are the checklist's dated entries whose time has come."""

    now: datetime
    hours: Hours
    is_on: bool
    paused_until: datetime | None
    is_idle: bool  # the owner has been silent for longer than beats go on
    breaker_open: bool
    over_budget: bool
    unreadable: (
        WorkspaceError | None
    )  # why HEARTBEAT.md cannot be read; the checklist is empty then
    checklist: Checklist
    due: tuple[Item, ...]
    busy: bool


@dataclass(frozen=True, slots=True)
class Run:
    """The beat runs, for these dated entries beside what is open anyway."""

    due: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """The beat does not run."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The beat tells the owner that HEARTBEAT.md cannot be read, and asks no model."""

    error: WorkspaceError


Decision = Run | Skip | Unreadable
_Gate = Callable[[GateView], Reason | None]


def decide(view: GateView, *, force: bool = False) -> Decision:
    """Skip for the first gate that is shut, in the order in which the user would name them. `force`
    opens all but the budget and a busy session.

    A file that cannot be read may hold anything, so it is told where an empty checklist would be the
    reason to skip, and where a forced beat would ask about it.
    """
    gates: tuple[_Gate, ...] = (_switch, _pause, _hours, _breaker, _budget)
    if reason := _first_shut((_budget, _busy) if force else gates, view):
        return Skip(reason)
    if view.unreadable is not None:
        return Unreadable(view.unreadable)
    if not force and (reason := _first_shut((_work, _busy), view)):
        return Skip(reason)
    return Run(view.due)


def _first_shut(gates: Sequence[_Gate], view: GateView) -> Reason | None:
    return next((reason for gate in gates if (reason := gate(view)) is not None), None)


def _switch(view: GateView) -> Reason | None:
    return None if view.is_on else Reason.DISABLED


def _pause(view: GateView) -> Reason | None:
    paused = view.paused_until is not None and view.now < view.paused_until
    return Reason.PAUSED if paused or view.is_idle else None


def _hours(view: GateView) -> Reason | None:
    return view.hours.closed(view.now)


def _breaker(view: GateView) -> Reason | None:
    return Reason.BREAKER_OPEN if view.breaker_open else None


def _budget(view: GateView) -> Reason | None:
    return Reason.BUDGET if view.over_budget else None


def _work(view: GateView) -> Reason | None:
    if view.checklist.is_empty:
        return Reason.EMPTY_CHECKLIST
    return None if view.checklist.has_open or view.due else Reason.NOTHING_DUE


def _busy(view: GateView) -> Reason | None:
    return Reason.BUSY if view.busy else None
