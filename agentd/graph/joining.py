"""Which names mean the same thing: what the owner's facts call each other, and his own table. Pure.

While it holds that the user's sister is Klara, and no other, "sister", "my sister", "the user's sister" and
"sister Klara" are names of Klara's, whatever the language of the relation; and while Klara's employer is
Bosch, "my sister's employer" is one of Bosch's. No word of any language is known here but `user`, the
possessive `'s`, and what the triples of facts are written with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agentd.domain.fact import Triple
from agentd.errors import GraphError
from agentd.graph.naming import Aliases, normal_label, normal_predicate

OWNER = "user"
OWNER_TOO = {"me": OWNER, "myself": OWNER}  # how the owner speaks of himself

_OF = "'s-"  # between a thing and what it has
_OWN = ("my-", f"the-{OWNER}{_OF}")  # what begins a name of something that the owner has
_NAMED = (
    "'s-name",
    "-name",
)  # ends the relation of those whose name is known: ("user", "dog name", "Rex")
_ROUNDS = 4  # of names that follow from others


class Names:
    """The names that hold while these triples do. `own` is the owner's table, which wins over them."""

    def __init__(self, own: Aliases, triples: Iterable[Triple] = ()) -> None:
        self._own = dict(own.table)
        self._one: Mapping[tuple[str, str], str] = {}  # what a thing has just one of
        self._bare: Mapping[str, str] = {}  # names that do not say whose it is
        fit = [one for one in map(_written, triples) if one is not None]
        for _ in range(_ROUNDS):
            before = self._one
            self._learn(fit)
            if self._one == before:
                break

    def resolve(self, name: str) -> str:
        """The normal label of what a name stands for; what only says "sister" means the owner's. Raises
        GraphError for what is no label.
        """
        return self._whom(normal_label(name))

    def triple(self, triple: Triple) -> Triple:
        """The triple in normal words, said of what it is about: what is told of the user as "sister's
        employer" is Klara's employer. In a value "sister" is just a word. Raises GraphError for words
        that are no labels.
        """
        return self._told(_labels(triple))

    def _told(self, said: _Written) -> Triple:
        about, relation = self._whom(said.subject), said.relation
        head, possessive, last = f"{about}{_OF}{said.has}".rpartition(_OF)
        if possessive and (holder := self._owned(head)) != head:
            about, relation = holder, normal_predicate(last)
        return Triple(about, relation, self._what(said.value))

    def _whom(self, label: str) -> str:
        found = self._what(label)
        return self._aliased(self._bare.get(found, found))

    def _what(self, label: str) -> str:
        label = self._aliased(label)
        for start in _OWN:
            if label.startswith(start):
                label = f"{OWNER}{_OF}{label.removeprefix(start)}"
        return self._aliased(self._owned(label))

    def _aliased(self, label: str) -> str:
        return self._own.get(label, label)

    def _owned(self, label: str) -> str:
        """What "klara's employer" is, followed from the front; the label where it is not known."""
        holder, possessive, rest = label.partition(_OF)
        if not possessive:
            return label
        has = self._aliased(self._bare.get(holder, holder))
        if (OWNER, spoken := label.replace(_OF, "-")) in self._one:
            return self._one[OWNER, spoken]
        while rest:
            for whole in (rest, rest.replace(_OF, "-")):  # "sister's employer" or "sister employer"
                if (has, whole) in self._one:
                    return self._one[has, whole]
            relation, _, rest = rest.partition(_OF)
            if (has, relation) not in self._one:
                return label
            has = self._one[has, relation]
        return has

    def _learn(self, triples: Iterable[_Written]) -> None:
        values: dict[tuple[str, str], set[str]] = {}
        for said in triples:
            told = self._told(said)
            for name in _relations(told.relation.replace("_", "-")):
                values.setdefault((told.subject, name), set()).add(told.value)
        one = {key: next(iter(found)) for key, found in values.items() if len(found) == 1}
        self._one = {key: value for key, value in one.items() if value != key[0]}
        bare: dict[str, str] = {}
        for (subject, relation), value in self._one.items():
            if subject == OWNER:
                bare[relation] = value
                bare[f"{relation}-{value}"] = value
        self._bare = bare


class _Written(NamedTuple):
    """A triple as labels and predicate; `has` is the relation as a label."""

    subject: str
    relation: str
    has: str
    value: str


def _labels(triple: Triple) -> _Written:
    """Raises GraphError."""
    subject, value = normal_label(triple.subject), normal_label(triple.value)
    return _Written(
        subject, normal_predicate(triple.relation), normal_label(triple.relation), value
    )


def _written(triple: Triple) -> _Written | None:
    try:
        return _labels(triple)
    except GraphError:
        return None  # it is no label, and names nothing


def _relations(relation: str) -> Iterable[str]:
    """The relation, and what it is where it only tells the name: "dog" of "dog name"."""
    yield relation
    for ending in _NAMED:
        if relation.endswith(ending) and relation != ending:
            yield relation.removesuffix(ending)
            return
