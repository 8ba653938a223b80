"""The whole talk, made of the forms: waves of conversations, and what is taken back after each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.learning_talk import phrases, unseen
from benchmarks.learning_talk.form import Form, Noise
from benchmarks.learning_talk.invented import Inventor
from benchmarks.learning_talk.noise import noise

_WAVES = 4
_LEAST = 3  # conversations of a wave
_BEFORE = (
    "",
    "",
    "",
    "Hi! ",
    "Hello again. ",
    "Long day today. ",
    "By the way: ",
    "Good morning. ",
)
_BEHIND = (
    "",
    "",
    "",
    " How are you?",
    " What should we cook tonight?",
    " Thanks!",
    " Anyway, good night.",
)
_EXPLICIT = 8  # every how manyth fact is told with the wish to have it remembered
_AGAIN = 3  # every how manyth is told again in other words
_MANNERS = ("id", "command", "chat")

Json = dict[str, Any]


@dataclass(slots=True)
class Plant:
    """A fact of the person. `values` are what it was told to be, the last one holds; a `manner` says how
    it was taken back.
    """

    form: Form
    subject: str
    values: list[str]
    wave: int
    is_unseen: bool
    manner: str = ""
    is_explicit: bool = False  # then what is only told in passing does not replace it
    taught: dict[str, Json] = field(default_factory=dict)  # by the sentence that tells it

    @property
    def value(self) -> str:
        """The value that holds."""
        return self.values[-1]

    @property
    def question(self) -> str:
        """What is asked to find it."""
        return self.form.ask.format(s=self.subject, v=self.value)

    def told(self, sentence: str, old: str = "") -> str:
        """One of the form's sentences about the value that holds; a model learns it from that."""
        text = sentence.format(s=self.subject, v=self.value, o=old)
        named = {"s": self.subject, "v": self.value}
        self.taught[text] = {
            "content": self.form.fact.format(**named),
            "category": self.form.category,
            "subject": self.form.about.format(**named),
            "relation": self.form.relation.format(**named),
            "value": self.value,
        }
        return text


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, and how a scripted model answers it: by a tool first, if it names one."""

    text: str
    answer: str = "All right."
    tool: str = ""
    input: Json = field(default_factory=dict)


@dataclass(slots=True)
class Script:
    """The talk. `waves` are conversations by their keys; `lures` are what must be no fact, by value."""

    waves: list[dict[str, list[Turn]]]
    plants: list[Plant]
    noises: list[Noise] = field(default_factory=list)
    lures: dict[str, Noise] = field(default_factory=dict)
    repeats: int = 0

    @property
    def changes(self) -> int:
        """How many values were replaced."""
        return sum(len(plant.values) - 1 for plant in self.plants)

    def taken_back(self, wave: int) -> list[Plant]:
        """What the person wants forgotten after this wave."""
        gone = [plant for plant in self.plants if plant.manner]
        return [
            plant for at, plant in enumerate(gone) if max(plant.wave, at % len(self.waves)) == wave
        ]


def script(conversations: int, plants: int, changes: int, forgets: int, noises: int) -> Script:
    """Always the same talk for the same numbers. `plants` are those of the usual forms at most."""
    random = Random(20261122)
    inventor = Inventor(random)
    waves = max(1, min(_WAVES, conversations // _LEAST))
    known = list(_plants(phrases.FORMS, inventor, random, waves, is_unseen=False))[:plants]
    share = min(1.0, plants / 400)
    others = list(_plants(unseen.FORMS, inventor, random, waves, is_unseen=True))
    others = others[: max(2, int(share * len(others)))]
    made = Script([{} for _ in range(waves)], [*known, *others])
    keys = [f"chat:talk-{number}" for number in range(conversations)]
    turns: list[dict[str, list[Turn]]] = [
        {key: [] for key in keys[wave::waves]} for wave in range(waves)
    ]
    changing = [p for p in known if p.form.change]
    random.shuffle(changing)
    changing = [
        *changing[:changes],
        *(p for p in others if p.form.change and random.random() < 0.5),
    ]
    _tell(made, turns, changing, random, inventor)
    lasting = [p for p in known if p not in changing and p.form.shape != "port"]
    for at, plant in enumerate(random.sample(lasting, forgets)):
        plant.manner = _MANNERS[at % len(_MANNERS)]
    source = noise(random, inventor)
    for _ in range(noises):
        told, value = next(source)
        made.noises.append(told)
        made.lures[value] = told
        listed = random.choice(list(random.choice(turns).values()))
        listed.insert(random.randrange(len(listed) + 1), _noise(told))
    made.waves = turns
    return made


def _plants(
    forms: Sequence[Form], inventor: Inventor, random: Random, waves: int, *, is_unseen: bool
) -> Iterator[Plant]:
    pairs = [(form, subject) for form in forms for subject in form.subjects or [""] * form.times]
    random.shuffle(pairs)
    for at, (form, subject) in enumerate(pairs):
        about = subject or inventor.value("name")
        value = inventor.value(form.shape)
        yield Plant(form, about, [value], at % waves, is_unseen)


def _tell(
    made: Script,
    turns: list[dict[str, list[Turn]]],
    changing: Sequence[Plant],
    random: Random,
    inventor: Inventor,
) -> None:
    """Put every plant into a conversation, the changes and repetitions behind them."""
    for at, plant in enumerate(made.plants):
        listed = random.choice(list(turns[plant.wave].values()))
        sentence = plant.told(random.choice(plant.form.say))
        plant.is_explicit = at % _EXPLICIT == 0
        listed.append(_explicit(sentence) if plant.is_explicit else _in_passing(sentence, random))
        if at % _AGAIN == 0 and plant.form.again:
            made.repeats += 1
            listed.append(_in_passing(plant.told(random.choice(plant.form.again)), random))
    for plant in changing:
        later = [*range(plant.wave + 1, len(turns))]
        old = plant.value
        plant.values.append(inventor.value(plant.form.shape))
        sentence = plant.told(random.choice(plant.form.change), old)
        if later:
            listed = random.choice(list(turns[random.choice(later)].values()))
        else:
            listed = _with(turns[plant.wave], plant)
        listed.append(_explicit(sentence) if plant.is_explicit else _in_passing(sentence, random))


def _with(wave: dict[str, list[Turn]], plant: Plant) -> list[Turn]:
    """The conversation in which it was told."""
    told = next(iter(plant.taught))
    return next(turns for turns in wave.values() if any(told in turn.text for turn in turns))


def _explicit(sentence: str) -> Turn:
    return Turn(f"Remember that {sentence}", tool="remember", input={"text": sentence})


def _in_passing(sentence: str, random: Random) -> Turn:
    return Turn(f"{random.choice(_BEFORE)}{sentence}{random.choice(_BEHIND)}")


def _noise(told: Noise) -> Turn:
    if told.file:
        path = told.text.split()[1]
        return Turn(told.text, told.answer, "memory_read", {"path": path})
    return Turn(told.text, told.answer or "I see.")
