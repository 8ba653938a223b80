"""One pattern for a sentence in the first person, and the fact it states."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from agentd.domain.fact import Category

MY = r"(?:my|our)"
I_AM = r"(?:i am|i'm|im|we are|we're)"
I_HAVE = r"(?:i have|i've got|i have got|we have|we've got)"
_GROUP = re.compile(r"\(\?P<([a-z]+)>")
# A name as people write it: up to three words, or with capitals up to five. The groups are `v`.
NAME = r"(?P<v>(?:(?-i:Dr|Prof|Mr|Mrs|Ms)\.? )?[^\W\d_][\w'-]*(?: (?-i:[A-Z])[\w'.-]*){0,3})"
PROPER = r"(?P<v>(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|Angst\b|Ruhe\b|Frieden\b)(?-i:[A-Z0-9])[\w'.&+#/-]*(?: (?:(?-i:[A-Z0-9])[\w'.&+#/-]*|of|the|and|am|de|la|upon)){0,4})"
PHRASE = r"(?P<v>[^\s,;:!?()][^,;:!?()]{0,78})"
# A few words, or a list of them.
LIST = r"(?P<v>[^\s;:!?()][^;:!?()]{0,78})"

NAMED = " {w}"  # ends a subject that is told apart from others of its kind by a name


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` must match a whole clause, whatever its case. In `told` and `relation` its named
    groups stand in braces, `{S}` for “The user” and `{P}` for “The user's”; `value` is the triple's. A rule
    whose value must not be a loose word (`it`, `the way …`) is `strict`; one that names a list
    gives a claim for each member when it `lists`. One whose subject ends with `NAMED` says
    besides that it is called `w`.
    """

    pattern: str
    told: str
    relation: str
    category: Category
    value: str = "{v}"
    strict: bool = True
    lists: bool = False
    subject: str = "{user}"
    denied: str = ""  # the relation that no longer holds for the group `w`

    def match(self, clause: str) -> re.Match[str] | None:
        """What the groups stand for, if the whole clause is of this form."""
        return _compiled(self.pattern).fullmatch(clause)


def rule(
    pattern: str,
    told: str,
    relation: str,
    category: Category = Category.PERSONAL,
    value: str = "{v}",
    *,
    strict: bool = True,
    lists: bool = False,
    subject: str = "{user}",
    denied: str = "",
) -> Rule:
    """A rule of its parts. A group may stand in several alternatives: they get numbers."""
    return Rule(pattern, told, relation, category, value, strict, lists, subject, denied)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled when it is first needed: most starts of a process never read a sentence.
    A group of several alternatives has a number from the second on (`v2`).
    """
    seen: Counter[str] = Counter()
    return re.compile(_GROUP.sub(lambda match: _numbered(match[1], seen), pattern), re.IGNORECASE)


def _numbered(name: str, seen: Counter[str]) -> str:
    seen[name] += 1
    return f"(?P<{name}{seen[name] if seen[name] > 1 else ''}>"
