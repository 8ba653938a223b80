"""Forms that no rule was ever made or mended for: whoever works on the rules does not read them."""

from __future__ import annotations

from benchmarks.learning_talk.form import Form

FORMS = (
    Form(
        ("My favourite {s} has always been {v}.", "I'd name {v} as my favourite {s}.", "My absolute favourite {s} is {v}!"),
        ("my favorite {s} is {v} lol",), ("My favourite {s} is {v} these days.",),
        "Which {s} is my favourite?", "{v} is the user's favourite {s}.", "favorite {s}",
        ("ice cream", "magazine", "sauce", "comedian", "bike brand", "mug", "sandwich", "street", "lake", "pub"),
        category="preference",
    ),
    Form(
        ("We're running the {s} service on port {v}.", "The {s} API is on port {v}."),
        ("The {s} service listens on port {v}.",), ("We moved the {s} service to port {v}.",),
        "What port is the {s} service on?", "The {s} service runs on port {v}.", "port",
        times=8, shape="port", category="project", about="{s} service",
    ),
    Form(
        ("We got a {s} last week, her name is {v}.", "Our {s} is named {v}.", "{v} is the name of our {s}."),
        ("our {s} {v} is asleep right now",), (),
        "What's our {s}'s name?", "The user's {s} is named {v}.", "{s} name",
        ("canary", "pony", "goldfish", "budgie", "tortoise", "snake"),
    ),
    Form(
        ("My {s} just started working for {v}.", "My {s} has a job at {v}.", "My {s} is employed by {v}."), (), (),
        "Who does my {s} work for?", "The user's {s} works for {v}.", "{s} employer",
        ("brother-in-law", "godfather", "flatmate", "stepsister", "sister", "son"),
    ),
    Form(
        ("My {s} moved to {v} in spring.", "My {s} has a flat in {v}.", "My {s} is from {v}."), (), (),
        "In which town is my {s}?", "The user's {s} lives in {v}.", "{s} home",
        ("godmother", "daughter", "brother", "mother-in-law", "pen pal", "grandma"),
    ),
    Form(
        ("I bought a {v} as my new {s}.", "The {s} I have is a {v}.", "My {s} at home is a {v}."), (),
        ("I replaced my {s}, it's a {v} now.",),
        "What model is my {s}?", "The user's {s} is a {v}.", "{s}",
        ("television", "vacuum cleaner", "e-reader", "dishwasher", "headphones", "scanner"),
    ),
    Form(
        ("I can't get enough of {v} {s}.", "I'm really into {v} {s}.", "I adore {v} {s}."), (), (),
        "Is {v} {s} something I like?", "The user loves {v} {s}.", "loves",
        ("curry", "tofu", "pancakes", "tacos", "sushi", "falafel", "kimchi", "waffles"),
        shape="word", category="preference",
    ),
    Form(
        ("I can't stand {v}.", "I really dislike {v}.", "I don't like {v} at all."), (), (),
        "Do I like {v}?", "The user dislikes {v}.", "dislikes", times=8, category="preference",
    ),
    Form(
        ("For {s} I rely on {v}.", "We do all our {s} with {v}.", "I use {v} for {s}, it works well."), (),
        ("I no longer use {o} for {s}, I use {v} for {s}.",),
        "Which tool do I use for {s}?", "The user uses {v} for {s}.", "uses",
        ("mailing lists", "wireframes", "habit tracking", "dictation", "timesheets", "newsletters"),
        category="preference",
    ),
    Form(
        ("We agreed to rename the {s} to {v}.", "I decided that the {s} will be called {v}."), (), (),
        "What name did we choose for the {s}?", "The user decided to call the {s} {v}.", "decided",
        ("garden", "raft", "theatre group", "cargo bike", "shed", "trio"), category="decision",
    ),
    Form(
        ("The {s} is in the {v} box.", "I put the {s} into the {v} cupboard.", "My {s} is under the {v} stairs."), (), (),
        "Where is the {s}?", "The user's {s} is in the {v} box.", "place of {s}",
        ("first aid kit", "toolbox", "spare key", "sledge", "air pump", "fuse wire"),
    ),
    Form(
        ("Unser Haustier, ein {s}, heißt {v}.", "Mein {s} heißt {v}."), (), (),
        "Wie heißt mein {s}?", "The user's {s} is called {v}.", "{s} name",
        ("Wellensittich", "Bruder", "Sohn", "Vater"),
    ),
    Form(
        ("Mein Lieblings{s} ist {v}.", "Am liebsten mag ich {v} als {s}."), (), (),
        "Was ist mein Lieblings{s}?", "The user's favourite {s} is {v}.", "favourite {s}",
        ("lied", "spiel", "tier", "verein", "gericht"), category="preference",
    ),
)  # fmt: skip
