"""The usual forms: sentences as people type them."""

from __future__ import annotations

from benchmarks.learning_talk.form import Form

_FAVOURITES = """
cheese|tea|restaurant|author|painter|singer|board game|card game|beach|mountain|river|village|bakery
|pizzeria|museum|cinema|podcast|radio station|wine|beer|cocktail|soup|dessert|spice|fruit|apple
|chocolate|biscuit|soap|perfume|flower|tree|bird|composer|poet|novel|opera|sculptor|bookshop|cafe
|hotel|campsite|hiking trail|ski resort|football club|cyclist|skater|chess opening|font|pen|notebook
|keyboard layout|chair|lamp|watch|jacket|shoe brand|yoga studio|barber|newspaper
"""
_LIKED = """
cheese|tea|honey|jam|bread|coffee|yoghurt|wine|soap|pasta|rice|mustard|vinegar|juice|sausage|salad
|olives|crackers|chocolate|biscuits|candles|pencils|wool|paper|ink|socks|shampoo|beans|pickles|noodles
|muesli|granola|cider|lemonade|oil|butter|marmalade|pesto|ravioli|hummus|nougat|liquorice|ginger beer
"""
_JOBS_FOR = """
invoices|backups|photos|taxes|recipes|mind maps|passwords|podcasts|presentations|time tracking|maps
|translations|spreadsheets|drawings|video calls|bookkeeping|flash cards|feeds|travel plans|sheet music
|diagrams|budgets|slides|screenshots|bookmarks|surveys
"""
_KEPT = """
passport|drill|sewing kit|torch|birth certificate|umbrella|tripod|tent|sleeping bag|ladder|screwdriver
|soldering iron|tax folder|spare bulbs|chess set|binoculars|telescope|skates|snorkel|hammock
"""
_NAMED = """
boat|band|newsletter|quiz team|allotment|book club|sourdough|robot vacuum|sailing dinghy|choir
|podcast|running group|tandem|cabin|camper van|telescope|bakery stall|guild|hackathon team|kayak
"""
_WORKING = (
    "aunt|uncle|cousin|nephew|niece|roommate|colleague|best friend|neighbour|grandfather|coach"
)
_LIVING = "mother|father|cousin|uncle|aunt|nephew|niece|grandmother|best friend|landlord|accountant"
_PEOPLE = (
    "boss|landlord|dentist|doctor|accountant|lawyer|coach|therapist|wife|manager|tax advisor|vet"
)
_PETS = "dog|cat|hamster|rabbit|parrot|horse|turtle|ferret"
_THINGS = (
    "laptop|phone|camera|printer|router|monitor|tablet|browser|bank|gym|password manager|editor"
)
_GERMAN_USES = "Rechnungen|Fotos|Steuern|Rezepte|Termine|Karten|Noten|Zeichnungen|Listen|Umfragen"


def _each(listed: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in listed.replace("\n", "").split("|"))


FORMS = (
    Form(
        ("My favourite {s} is {v}.", "{v} is my favourite {s}.", "My favorite {s} is {v}, by the way."),
        ("As I said, my favourite {s} is {v}.", "My all-time favourite {s} is {v}."),
        ("Actually, my favourite {s} is {v} now.", "My new favourite {s} is {v}."),
        "What is my favourite {s}?", "The user's favourite {s} is {v}.", "favourite {s}",
        _each(_FAVOURITES), category="preference",
    ),
    Form(
        ("Project {s} runs on port {v}.", "The port of project {s} is {v}."),
        ("Project {s} listens on port {v}.",),
        ("Project {s} now runs on port {v}.", "The port of project {s} changed to {v}."),
        "Which port does project {s} run on?", "The port of {s} is {v}.", "port",
        times=38, shape="port", category="project", about="{s}",
    ),
    Form(
        ("Project {s} is hosted on {v}.", "The host of project {s} is {v}."),
        ("For the record, project {s} is hosted on {v}.",),
        ("The host of project {s} is now {v}.",),
        "Where is project {s} hosted?", "The host of {s} is {v}.", "host",
        times=38, shape="host", category="project", about="{s}",
    ),
    Form(
        ("The domain of project {s} is {v}.",),
        ("Project {s}'s domain is {v}.",),
        ("The domain of project {s} has changed to {v}.",),
        "What is the domain of project {s}?", "The domain of {s} is {v}.", "domain",
        times=34, shape="host", category="project", about="{s}",
    ),
    Form(
        ("My {s} is called {v}.", "I have a {s} called {v}.", "My {s}'s name is {v}."),
        ("By the way, my {s} is called {v}.",), ("My {s} is called {v} now.",),
        "What is my {s} called?", "The user's {s} is called {v}.", "{s} name", _each(_PETS),
    ),
    Form(
        ("My {s} is called {v}.", "The name of my {s} is {v}.", "My {s}'s name is {v}."),
        ("You know, my {s}'s name is {v}.",), (),
        "What is the name of my {s}?", "The user's {s} is called {v}.", "{s} name", _each(_PEOPLE),
    ),
    Form(
        ("My {s} works at {v}.", "My {s} works for {v}."),
        ("Also, my {s} works at {v}.",), (),
        "Where does my {s} work?", "The user's {s} works at {v}.", "{s} employer", _each(_WORKING),
    ),
    Form(
        ("My {s} lives in {v}.",), ("My {s} lives in {v}, you know.",), (),
        "Where does my {s} live?", "The user's {s} lives in {v}.", "{s} home", _each(_LIVING),
    ),
    Form(
        ("My {s} is a {v}.", "My {s} is {v}."), ("My {s} is a {v}, as I said.",),
        ("My new {s} is a {v}.", "My {s} is now a {v}."),
        "Which {s} do I have?", "The user's {s} is a {v}.", "{s}", _each(_THINGS),
    ),
    Form(
        ("I really like {v} {s}.", "I love {v} {s}.", "I enjoy {v} {s} a lot."),
        ("I still love {v} {s}.",), (),
        "Do I like {v} {s}?", "The user likes {v} {s}.", "likes", _each(_LIKED), shape="word",
        category="preference",
    ),
    Form(
        ("I'm allergic to {v}.", "I have a severe allergy to {v}."),
        ("I am badly allergic to {v}.",), (),
        "Am I allergic to {v}?", "The user is allergic to {v}.", "allergic to", times=14, shape="word",
    ),
    Form(
        ("I use {v} for {s}.", "I'm using {v} for {s}."), ("I mostly use {v} for {s}.",),
        ("I switched from {o} to {v} for {s}.",),
        "What do I use for {s}?", "The user uses {v} for {s}.", "uses", _each(_JOBS_FOR),
        category="preference",
    ),
    Form(
        ("We decided to name the {s} {v}.", "I've decided to call the {s} {v}."), (), (),
        "What did we decide to name the {s}?", "The user decided to name the {s} {v}.", "decided",
        _each(_NAMED), category="decision",
    ),
    Form(
        ("I keep my {s} in the {v} drawer.", "I keep the {s} behind the {v} shelf."),
        ("Remember, I keep my {s} in the {v} drawer.",),
        ("I keep my {s} under the {v} desk now.",),
        "Where do I keep my {s}?", "The user keeps the {s} in the {v} drawer.", "place of {s}",
        _each(_KEPT),
    ),
    Form(
        ("I'm working on a book called {v}.", "I'm building an app called {v}."), (), (),
        "Am I working on {v}?", "The user works on {v}.", "works on", times=14, category="project",
    ),
    Form(
        ("Always sign letters to {v} by hand.",), (), (),
        "How do I write to {v}?", "Always sign letters to {v} by hand.", "instruction", times=5,
        category="instruction",
    ),
    Form(
        ("Never send bills to {v} on Mondays.",), (), (),
        "How do I write to {v}?", "Never send bills to {v} on Mondays.", "instruction", times=5,
        category="instruction",
    ),
    Form(
        ("Ich benutze {v} für {s}.", "Ich nutze {v} für {s}."), ("Ich verwende {v} für {s}.",), (),
        "Was benutze ich für {s}?", "The user uses {v} for {s}.", "uses", _each(_GERMAN_USES),
        category="preference",
    ),
    Form(
        ("Ich bin allergisch gegen {v}.", "Ich bin sehr allergisch gegen {v}."), (), (),
        "Bin ich gegen {v} allergisch?", "The user is allergic to {v}.", "allergic to",
        times=10, shape="name",
    ),
    Form(
        ("Ich mag {v}.", "Ich liebe {v}."), (), (),
        "Mag ich {v}?", "The user likes {v}.", "likes", times=10, category="preference",
    ),
)  # fmt: skip
