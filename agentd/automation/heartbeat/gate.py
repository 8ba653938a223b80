"""Whether a beat runs; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agentd.automation.heartbeat.hours import Hours
from agentd.core.beat import Reason
from agentd.core.checklist import Checklist, Item


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


def decide(view: GateView, *, force: bool = False) -> Run | Skip:
    """The first gate that is shut, in the order in which the user would name them. `force` opens
    all but the budget and a busy session.
    """
    gates: tuple[Callable[[GateView], Reason | None], ...] = (_budget, _busy)
    if not force:
        gates = (_switch, _pause, _hours, _breaker, _budget, _work, _busy)
    for gate in gates:
        if (reason := gate(view)) is not None:
            return Skip(reason)
    return Run(view.due)


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
