"""Everyday changes of any relation, and pairs of facts that hold at once, as one conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.conversations.conversation import Conversation, Expected, Turn


@dataclass(frozen=True, slots=True)
class Change:
    """A fact that is told, and another that takes its place: messages, values and a sentence with
    `{}`.
    """

    relation: str
    sentence: str
    told: str
    old: str
    told_later: str
    new: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two facts that hold at once."""

    relation: str
    sentence: str
    told: str
    one: str
    told_later: str
    other: str


CHANGES = (
    Change("landlord", "The user's landlord is {}.", (
        "Old Kaminski is our landlord, he never fixes the boiler."
        ), "Kaminski", (
        "The house was sold; a certain Frau Obermayr collects the rent these days."
        ), "Obermayr"),
    Change("school", "Nele goes to {}.", (
        "Nele goes to the Montessori on Wick Road."
        ), "Montessori", (
        "Nele settled in so well at St Ursula's after the summer."
        ), "St Ursula's"),
    Change("insurer", "The user's car is insured with {}.", "The car is insured with Helvetia.", "Helvetia", (
        "Got fed up with the premiums and went over to Zurich with the car."
        ), "Zurich"),
    Change("piano teacher", "The user's piano teacher is {}.", (
        "Piano on Thursdays with Madame Duval, who raps my knuckles."
        ), "Duval", (
        "Piano is fun again with Mr Osei, he lets me play Joplin."
        ), "Osei"),
    Change("commute", "The user commutes by {}.", (
        "I take the tram to work, twenty minutes."
        ), "tram", (
        "Cycling to the office since they dug up the rails."
        ), "bicycle"),
    Change("dosage", "The user takes {} of thyroxine.", (
        "The doctor has me on 75 micrograms of thyroxine."
        ), "75 micrograms", (
        "Thyroxine went up, 100 micrograms from today."
        ), "100 micrograms"),
    Change("shift", "The user works {} shifts.", "I'm on early shifts at the depot.", "early", (
        "They put me on lates at the depot, I get home at midnight."
        ), "late"),
    Change("password manager", "The user's password manager is {}.", "All my logins live in KeePass.", "KeePass", (
        "Finally migrated every login to Bitwarden."
        ), "Bitwarden"),
    Change("favourite team", "The user supports {}.", "I support Fortuna, come what may.", "Fortuna", (
        "I'm done with that club, it's Union for me now."
        ), "Union"),
    Change("dentist", "The user's dentist is {}.", (
        "My dentist is Dr Weiss in the market square."
        ), "Weiss", (
        "Dr Weiss retired, a Dr Anand took over my teeth."
        ), "Anand"),
    Change("desk", "The user's desk is on the {} floor.", (
        "My desk is on the third floor, by the plotter."
        ), "third", (
        "We were all shuffled round, I sit on the ninth floor."
        ), "ninth"),
    Change("phone tariff", "The user pays {} a month for the phone.", "I pay 12 euros a month for the phone.", "12 euros", (
        "The phone costs me 19 euros a month since the renewal."
        ), "19 euros"),
    Change("cat food", "The user's cat eats {}.", "Our cat only eats tuna pâté.", "tuna", (
        "Vet's orders: the cat gets nothing but kidney diet."
        ), "kidney diet"),
    Change("running goal", "The user is training for a {}.", "I'm training for a half marathon.", "half marathon", (
        "Aimed lower after the knee thing, a ten kilometre race will do."
        ), "ten kilometre race"),
    Change("childminder", "The user's childminder is {}.", "Our childminder is Ottilie.", "Ottilie", (
        "With Ottilie in Spain, Bogdan minds the little ones."
        ), "Bogdan"),
    Change("newspaper", "The user subscribes to {}.", "I have the Guardian delivered.", "Guardian", (
        "Cancelled the paper and took the Economist instead."
        ), "Economist"),
    Change("alarm", "The user's alarm rings at {}.", "My alarm rings at 6:10.", "6:10", "I moved the alarm to 5:40, sadly.", "5:40"),
    Change("parking space", "The user's parking space is number {}.", "My parking space is number 214.", "214", (
        "Facilities gave me space 87 near the lift."
        ), "87"),
    Change("electricity", "The user's electricity comes from {}.", (
        "Unser Strom kommt von den Stadtwerken Jena."
        ), "Stadtwerken Jena", (
        "Wir sind beim Strom zu Naturwatt gewechselt."
        ), "Naturwatt"),
    Change("thesis topic", "The user's thesis is about {}.", "Ma thèse porte sur les digues.", "les digues", (
        "J'ai changé de sujet de thèse : ce sont les estuaires."
        ), "les estuaires"),
    Change("bread", "The user buys bread at {}.", "Compro el pan en La Tahona.", "La Tahona", (
        "La Tahona cerró, ahora el pan es de Casa Benita."
        ), "Casa Benita"),
    Change("choir voice", "The user sings {} in the choir.", "I sing alto in the works choir.", "alto", "The choirmaster moved me down to tenor.", "tenor"),
    Change("stage of the house", "The user's house is at the stage of {}.", (
        "The house: the foundation is being poured."
        ), "foundation", (
        "The house has its roof truss up as of Friday."
        ), "roof truss"),
    Change("bank adviser", "The user's bank adviser is {}.", (
        "My adviser at the bank is called Lindqvist."
        ), "Lindqvist", (
        "The bank has assigned me to one Mrs Pereira."
        ), "Pereira"),
)  # fmt: skip

PAIRS = (
    Pair("child", "The user has a child called {}.", "Our eldest, Tamsin, is mad about owls.", "Tamsin", (
        "And then there is Rowan, our youngest, born in May."
        ), "Rowan"),
    Pair("job", "The user works as a {}.", "I work as a bookbinder.", "bookbinder", (
        "At weekends I also earn a bit as a lifeguard."
        ), "lifeguard"),
    Pair("language", "The user speaks {}.", "I speak Basque at home.", "Basque", "I picked up decent Turkish as well.", "Turkish"),
    Pair("allergy", "The user is allergic to {}.", "I'm allergic to latex.", "latex", (
        "Turns out penicillin gives me a rash too, so that's an allergy as well."
        ), "penicillin"),
    Pair("pet", "The user has a {}.", "We keep a tortoise.", "tortoise", "A parakeet has joined the household.", "parakeet"),
    Pair("instrument", "The user plays the {}.", "I play the bassoon.", "bassoon", "I have also taken up the banjo.", "banjo"),
    Pair("property", "The user owns a {}.", "We own a cabin at the lake.", "cabin", (
        "My share of Granny's estate is a vineyard, so we own that now too."
        ), "vineyard"),
    Pair("sister", "The user has a sister called {}.", "My sister Ilse is a judge.", "Ilse", "My other sister, Marlen, drives trucks.", "Marlen"),
)  # fmt: skip


def everyday() -> Conversation:
    """Everything is told in one session, and all that comes later in the next."""
    changes = [_both(f"change {at}", one) for at, one in enumerate(CHANGES)]
    pairs = [_two(f"pair {at}", one) for at, one in enumerate(PAIRS)]
    firsts, seconds = zip(*changes, *pairs, strict=True)
    return Conversation("everyday", (tuple(firsts), tuple(seconds)))


def _both(name: str, change: Change) -> tuple[Turn, Turn]:
    old, new = (
        _fact(f"{name} {when}", change.relation, change.sentence, value, told)
        for when, value, told in (
            ("old", change.old, change.told),
            ("new", change.new, change.told_later),
        )
    )
    return _turn(old), _turn(new, old.id)


def _two(name: str, pair: Pair) -> tuple[Turn, Turn]:
    one = _fact(f"{name} one", pair.relation, pair.sentence, pair.one, pair.told)
    other = _fact(f"{name} other", pair.relation, pair.sentence, pair.other, pair.told_later)
    return _turn(one), _turn(other)


def _fact(name: str, relation: str, sentence: str, value: str, told: str) -> Expected:
    text = sentence.format(value)
    keywords = ((sentence.split("{}", maxsplit=1)[0].strip(), value),)
    return Expected(name, text, keywords, told, triple=("user", relation, value))


def _turn(fact: Expected, *replaces: str) -> Turn:
    return Turn(fact.quote, "I see.", knows=(replace(fact, replaces=replaces),))
