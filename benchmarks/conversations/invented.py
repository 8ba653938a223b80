"""Facts about invented people and firms, whose names stand in no dictionary: a search of bytes
finds them and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from msgspec import Struct

from benchmarks.conversations.conversation import Conversation, Expected, Turn

_FIRST = "Bal Cor Dus Fen Gor Hax Jul Kem Lor Mab Nev Ost Pax Quo Rud Sib Tul Ven Wox Yar Zed"
_SECOND = "abri eqti inva oxta ulmi afro egni ipso ordu uzka ambo elzi icta ondu umbe"
_THIRD = "dex fal gon hurst kin lund mor nax pell quist ras stav tov vik wick zen"
_OF_SESSION = 10  # facts told in one


class Contact(Struct, frozen=True):
    """A fact, and messages that mention the same names without saying it."""

    firm: str
    name: str

    @property
    def text(self) -> str:
        """The fact, in the words in which it is also told."""
        return f"The contact at {self.firm} is {self.name}."

    @property
    def mention(self) -> str:
        """The person elsewhere."""
        return f"{self.name} from the choir has lost an umbrella again."

    @property
    def other_mention(self) -> str:
        """The firm without the person."""
        return f"There is a queue in front of {self.firm} this morning."


def contacts(count: int) -> list[Contact]:
    """Always the same, no name twice."""
    random, made = Random(20261123), dict[str, None]()
    parts = [part.split() for part in (_FIRST, _SECOND, _SECOND, _THIRD)]
    while len(made) < 2 * count:
        made["".join(random.choice(part) for part in parts)] = None
    names = list(made)
    return [Contact(*pair) for pair in zip(names[:count], names[count:], strict=True)]


def told(several: list[Contact]) -> Conversation:
    """All of them told, the agent saying each again, with the mentions between them."""
    sessions = [several[at : at + _OF_SESSION] for at in range(0, len(several), _OF_SESSION)]
    return Conversation("contacts", tuple(tuple(_turns(one)) for one in sessions))


def _turns(several: list[Contact]) -> Iterator[Turn]:
    for one in several:
        triple = (one.firm, "contact", one.name)
        keywords = ((one.firm, one.name),)
        fact = Expected(one.name, one.text, keywords, one.text.rstrip("."), triple=triple)
        yield Turn(one.text, f"Noted. {one.text} What else?", knows=(fact,))
        yield Turn(one.mention, "Poor umbrella.")
        yield Turn(one.other_mention, "It is that time of the year.")
