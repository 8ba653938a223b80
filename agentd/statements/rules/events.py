"""What is on the user's calendar."""

from __future__ import annotations

from agentd.statements.calendar import WHEN
from agentd.statements.rules.rule import MY, rule

_EVENT = r"(?:appointment|meeting|interview|exam|surgery|operation|checkup|check-up|reservation|wedding|conference|presentation|concert|deadline|viva|driving test|graduation|anniversary|vacation|holiday|trip|flight|doctor's appointment|performance review|parent-teacher meeting|job interview|visa appointment)"
_WHAT = rf"(?P<n>(?:(?!to |and )[\w'-]+ ){{0,3}}?{_EVENT})"
_WITH = r"(?P<w> (?:with|to|at|in|for) (?:the |my |Dr\.? )?[\w'.-]+(?: (?-i:[A-Z])[\w'.-]*){0,2})?"
_ON = rf"(?: (?:is|starts|begins|leaves|departs|takes place|is scheduled|is set|is booked))?(?: (?:on|at|for|am))? (?P<v>{WHEN})"
_MOVED = rf"(?: was| has been| got| is)? (?:moved|rescheduled|changed|pushed|postponed|brought forward|rebooked)(?: back| forward)?(?: from [\w ]{{2,20}})? to (?P<v>{WHEN})"

RULES = (
    rule(rf"(?:i have|i've got|i've|we have|we've got) (?:booked )?(?:a|an|my|our) (?:new )?{_WHAT}{_WITH}{_ON}", "{P} {n}{w} is on {v}.", "{n}{w}"),
    rule(rf"{MY} (?:next )?{_WHAT}{_WITH}(?: is| starts| begins| leaves| departs| takes place| is scheduled| is set| is booked| is now)(?: on| at| for)? (?P<v>{WHEN})", "{P} {n}{w} is on {v}.", "{n}{w}"),
    rule(rf"(?:my|our|the) {_WHAT}{_WITH}{_MOVED}", "{P} {n}{w} is on {v}.", "{n}{w}"),
    rule(rf"(?:i am|i'm|we are|we're|i'll be|we'll be) (?:flying|travelling|traveling) to (?P<w>(?-i:[A-Z])[\w -]{{1,30}}?)(?: on)? (?P<v>{WHEN})", "{P} flight to {w} is on {v}.", "flight to {w}"),
    rule(rf"(?:i am|i'm|we are|we're) getting married(?: on| in)? (?P<v>{WHEN})", "{P} wedding is on {v}.", "wedding"),
    rule(rf"(?:our|my) (?:wedding )?anniversary is(?: on)? (?P<v>{WHEN})", "{P} anniversary is on {v}.", "anniversary"),
    rule(rf"(?:i am|i'm|we are|we're|i'll be|we'll be) (?:on vacation|on holiday|on leave|away|out of office) from (?P<v>{WHEN} (?:to|until|till) {WHEN})", "{S} is away from {v}.", "away"),
    rule(rf"(?:i )?start(?:ing)? (?:at )?my new job(?: at (?-i:[A-Z])\w+)?(?: on)? (?P<v>{WHEN})", "{P} new job starts on {v}.", "new job start date"),
)  # fmt: skip
