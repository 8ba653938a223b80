"""Invented lives: 1,000 facts each, and questions that several of them answer together.

Five are told in five ways. Three are those that the choice of facts was tuned on: English with
nouns as relations, English with verbs and other orders of words, German. The other two, English in
the manner of notes and German as it is spoken, with other relations and questions, were written
afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from agentd.core.fact import Category, Fact, FactSource, Triple

FACTS = 1_000
NOW = datetime(2026, 11, 22, tzinfo=UTC)

# Each line is `subject | relation | value | sentence`, the last one of a chain the question. {p1}
# is a person, {c1} a company, {t1} a town, {k1} another name, {n1} a number.
NOUNS = """
user | sister | {p1} | The user's sister is called {p1}.
{p1} | employer | {c1} | {p1} works at {c1}.
{c1} | city | {t1} | {c1} has its headquarters in {t1}.
Which city is my sister's employer based in?

user | dentist | {p1} | The user's dentist is {p1}.
{p1} | practice address | {k1} Street {n1} | {p1} has a practice at {k1} Street {n1}.
What is the address of my dentist?

user | landlord | {p1} | The user rents from {p1}, the landlord.
{p1} | phone number | {n1} {n2} | {p1} can be reached on {n1} {n2}.
I need to phone my landlord, what's the number?

user | son | {p1} | The user has a son called {p1}.
{p1} | school | {k1} School | {p1} goes to {k1} School.
{k1} School | head teacher | {p2} | {p2} is head teacher at {k1} School.
Who runs the school that my son goes to?

user | boss | {p1} | The user's boss is {p1}.
{p1} | husband | {p2} | {p1} is married to {p2}.
{p2} | profession | glassblower | {p2} works as a glassblower.
What does the husband of my boss do for a living?

user | cello teacher | {p1} | {p1} teaches the user the cello.
{p1} | birthday | 3 June | {p1} was born on 3 June.
When is the birthday of my cello teacher?

user | car | {k1} 400 | The user drives a {k1} 400.
{k1} 400 | garage | {c1} | The {k1} 400 is serviced by {c1}.
{c1} | opening hours | 7:30 to 16:00 | {c1} is open from 7:30 to 16:00.
Until when is the garage open that services my car?

user | cat | {k1} | The user's cat is called {k1}.
{k1} | vet | {p1} | {k1} is treated by the vet {p1}.
Which vet looks after my cat?

user | favourite novelist | {p1} | The user's favourite novelist is {p1}.
{p1} | latest book | The {k1} Tide | {p1}'s latest book is The {k1} Tide.
What is the latest book by my favourite novelist?

user | insurance broker | {p1} | The user's insurance broker is {p1}.
{p1} | assistant | {p2} | {p2} is the assistant of {p1}.
{p2} | email | {k1}@office.example | {p2} reads mail at {k1}@office.example.
How can I write to the assistant of my insurance broker?

project {k1} | customer | {c1} | The customer of project {k1} is {c1}.
{c1} | contact | {p1} | The contact at {c1} is {p1}.
{p1} | language | Portuguese | {p1} speaks only Portuguese.
What language does our contact at the customer of project {k1} speak?

{k1} server | data centre | {k2} Park | The {k1} server stands in {k2} Park.
{k2} Park | operator | {c1} | {k2} Park is operated by {c1}.
Who operates the data centre where the {k1} server is?

user | band | The {k1}s | The user plays in a band called The {k1}s.
The {k1}s | drummer | {p1} | The drummer of The {k1}s is {p1}.
{p1} | hometown | {t1} | {p1} comes from {t1}.
Where does the drummer of my band come from?

user | gym | {k1} Fit | The user trains at {k1} Fit.
{k1} Fit | monthly fee | {n1} euros | {k1} Fit costs {n1} euros a month.
How much do I pay for the gym?

user | brother-in-law | {p1} | {p1} is the user's brother-in-law.
{p1} | restaurant | Chez {k1} | {p1} owns the restaurant Chez {k1}.
What is the restaurant of my brother-in-law called?

user | allergist | {p1} | The user sees the allergist {p1}.
{p1} | clinic | {k1} Clinic | {p1} works in the {k1} Clinic.
{k1} Clinic | parking | Lot {n1} | Visitors of the {k1} Clinic park on Lot {n1}.
Where can I park when I see my allergist?
"""

VERBS = """
user | has aunt | {p1} | {p1}, an aunt of the user, turned sixty.
{p1} | is married to | {p2} | {p2} married {p1} in spring.
{p2} | collects | tin soldiers | Tin soldiers are what {p2} collects.
What could I give to my aunt's husband, what does he collect?

user | is coached by | {p1} | On Mondays {p1} coaches the user.
{p1} | charges | {n1} pounds | An hour with {p1} costs {n1} pounds.
What does my coach charge for an hour?

user's flatmate | works for | {c1} | The user's flatmate works for {c1}.
{c1} | makes | wind turbines | Wind turbines are made by {c1}.
What does the company make that my flatmate works for?

user | supervises | {p1} | The user supervises {p1}'s thesis.
{p1} | writes thesis about | lichen | {p1} writes about lichen.
{p1} | submits on | 12 March | The thesis of {p1} is due on 12 March.
When does the student whose thesis I supervise have to submit?

user | flatmate | {p1} | {p1} shares the flat with the user.
user's flatmate | is moving to | {t1} | The user's flatmate is moving to {t1}.
To which town is {p1} moving?

user | is represented by | {p1} | The lawyer {p1} represents the user.
{p1} | belongs to firm | {c1} | {p1} is a partner of {c1}.
{c1} | sits in | {k1} Tower | The offices of {c1} are in {k1} Tower.
In which building is the firm of the lawyer who represents me?

user | rides | {k1} | The user rides a mare named {k1}.
{k1} | is stabled at | {k2} Farm | {k1} is kept at {k2} Farm.
{k2} Farm | is run by | {p1} | {p1} runs {k2} Farm.
Who runs the farm where the mare that I ride is kept?

user | subscribes to | The {k1} Review | The user subscribes to The {k1} Review.
The {k1} Review | appears | every second Thursday | The {k1} Review appears every second Thursday.
How often does the magazine appear that I subscribe to?

user | godchild | {p1} | {p1} is a godchild of the user.
{p1} | is afraid of | thunder | Thunder frightens {p1}.
What frightens my godchild?

user | sails on | the {k1} | The user sails on the {k1}.
the {k1} | lies in | {t1} | In winter the {k1} lies in {t1}.
{t1} | harbour master | {p1} | {p1} is harbour master in {t1}.
Who is harbour master where the boat lies that I sail on?

user | neighbour | {p1} | Next door to the user lives {p1}.
{p1} | is caring for | {p2} | {p1} cares for {p2}, who is bedridden.
{p2} | takes | warfarin | {p2} is on warfarin.
Which drug is the bedridden relative taking whom my neighbour cares for?

{k1} pipeline | is maintained by | {p1} | The {k1} pipeline is maintained by {p1}.
{p1} | is on leave until | 4 August | Until 4 August {p1} is on leave.
When is the maintainer of the {k1} pipeline back from leave?

user | studied under | {p1} | The user studied physics under {p1}.
{p1} | retired to | {t1} | {p1} retired to {t1}.
Where did the professor retire to whom I studied physics under?

user | donates to | {k1} Shelter | The user gives monthly to the {k1} Shelter.
{k1} Shelter | was founded by | {p1} | {p1} founded the {k1} Shelter.
{p1} | was once | a jockey | Years ago {p1} was a jockey.
What was the founder of the shelter that I donate to, years ago?

user | choir | {k1} Voices | The user sings with the {k1} Voices.
{k1} Voices | is conducted by | {p1} | {p1} conducts the {k1} Voices.
Who conducts my choir?

user | leases from | {c1} | The user leases a van from {c1}.
{c1} | was bought by | {c2} | {c2} bought {c1} last year.
{c2} | sends invoices from | {k1}@billing.example | Invoices of {c2} come from {k1}@billing.example.
From which address do the invoices of the buyer of our leasing company come?
"""

GERMAN = """
user | Schwester | {p1} | Die Schwester des Benutzers heißt {p1}.
{p1} | Arbeitgeber | {c1} | {p1} arbeitet bei {c1}.
{c1} | Sitz | {t1} | {c1} hat den Sitz in {t1}.
In welcher Stadt sitzt der Arbeitgeber meiner Schwester?

user | Zahnarzt | {p1} | Der Zahnarzt des Benutzers ist {p1}.
{p1} | Telefonnummer | {n1} {n2} | {p1} hat die Telefonnummer {n1} {n2}.
Welche Nummer hat mein Zahnarzt?

user | Sohn | {p1} | Der Benutzer hat einen Sohn namens {p1}.
{p1} | Lehrerin | {p2} | Die Lehrerin von {p1} ist {p2}.
{p2} | Sprechstunde | Dienstag um 14 Uhr | {p2} hat dienstags um 14 Uhr Sprechstunde.
Wann hat die Lehrerin meines Sohnes Sprechstunde?

user | Vermieter | {p1} | Der Benutzer mietet von {p1}.
{p1} | Anwalt | {p2} | {p1} wird von {p2} anwaltlich vertreten.
Wie heißt der Anwalt meines Vermieters?

user | Chef | {p1} | {p1} ist der Chef des Benutzers.
{p1} | Ehefrau | {p2} | {p1} ist mit {p2} verheiratet.
{p2} | Beruf | Hebamme | {p2} arbeitet als Hebamme.
Was macht die Frau von meinem Chef beruflich?

user | Hund | {k1} | Der Hund des Benutzers heißt {k1}.
{k1} | Tierarztpraxis | {c1} | {k1} wird bei {c1} behandelt.
{c1} | Notdienst | {n1} | Der Notdienst von {c1} ist unter {n1} zu erreichen.
Welchen Notdienst rufe ich an, wenn meinem Hund etwas fehlt?

user | Auto | {k1} 300 | Der Benutzer fährt einen {k1} 300.
{k1} 300 | Werkstatt | {c1} | Den {k1} 300 wartet {c1}.
Welche Werkstatt wartet mein Auto?

user | Steuerberaterin | {p1} | {p1} ist die Steuerberaterin des Benutzers.
{p1} | Kanzlei | {c1} | {p1} arbeitet in der Kanzlei {c1}.
{c1} | Anschrift | {k1}straße {n1} | Die Kanzlei {c1} liegt in der {k1}straße {n1}.
Wo liegt die Kanzlei meiner Steuerberaterin?

user | Patentante | {p1} | Die Patentante des Benutzers ist {p1}.
{p1} | Lieblingsblume | Ranunkeln | {p1} mag am liebsten Ranunkeln.
Welche Blumen mag meine Patentante?

user | Gitarrenlehrer | {p1} | Gitarre lernt der Benutzer bei {p1}.
{p1} | Band | {k1} | {p1} spielt in der Band {k1}.
{k1} | nächstes Konzert | 9. Mai | {k1} tritt am 9. Mai auf.
Wann tritt die Band auf, in der mein Gitarrenlehrer spielt?

user | Verein | TV {k1} | Der Benutzer turnt im TV {k1}.
TV {k1} | Beitrag | {n1} Euro | Der TV {k1} nimmt {n1} Euro im Jahr.
Wie hoch ist der Beitrag in meinem Verein?

Projekt {k1} | Auftraggeber | {c1} | Auftraggeber von Projekt {k1} ist {c1}.
{c1} | Ansprechpartnerin | {p1} | Ansprechpartnerin bei {c1} ist {p1}.
{p1} | erreichbar | nur vormittags | {p1} ist nur vormittags erreichbar.
Wann ist die Ansprechpartnerin beim Auftraggeber von Projekt {k1} erreichbar?

user | Nachbarin | {p1} | Nebenan wohnt {p1}, die Nachbarin des Benutzers.
{p1} | Enkel | {p2} | Der Enkel von {p1} ist {p2}.
{p2} | Studienort | {t1} | {p2} studiert in {t1}.
Wo studiert der Enkel meiner Nachbarin?

Server {k1} | Standort | {t1} | Der Server {k1} steht in {t1}.
{t1} | Techniker | {p1} | In {t1} ist {p1} als Techniker zuständig.
Welcher Techniker ist für den Server {k1} zuständig?

user | Cousin | {p1} | {p1} ist ein Cousin des Benutzers.
{p1} | Boot | {k1} | {p1} gehört das Boot {k1}.
{k1} | Liegeplatz | Steg {n1} | Die {k1} liegt an Steg {n1}.
An welchem Steg liegt das Boot von meinem Cousin?

user | Hausarzt | {p1} | Der Hausarzt des Benutzers ist {p1}.
{p1} | Vertretung | {p2} | {p1} wird im Urlaub von {p2} vertreten.
{p2} | Praxis | {k1}gasse {n1} | {p2} hat die Praxis in der {k1}gasse {n1}.
Wo ist die Praxis der Urlaubsvertretung meines Hausarztes?
"""

NOTES = """
user | accountant | {p1} | Accountant of the user: {p1}.
{p1} | office | {k1} House, floor 3 | {p1}: office in {k1} House, floor 3.
I'm meeting my accountant tomorrow, where was the office again?

user | daughter | {p1} | Daughter of the user: {p1}.
{p1} | best friend | {p2} | {p1} has {p2} as best friend.
{p2} | allergy | walnuts | {p2}: allergic to walnuts.
My daughter brings her best friend for dinner. Any allergies?

user | physiotherapist | {p1} | Physiotherapist of the user: {p1}.
{p1} | holiday | 2 to 16 August | {p1} away from 2 to 16 August.
When is my physiotherapist away on holiday?

user | team lead | {p1} | Team lead of the user: {p1}.
{p1} | deputy | {p2} | Deputy of {p1}: {p2}.
{p2} | desk | B-{n1} | Desk of {p2}: B-{n1}.
At which desk does the deputy of my team lead sit?

user | car insurer | {c1} | Car insured with {c1} (the user's).
{c1} | hotline | 0800 {n1} | Hotline of {c1}: 0800 {n1}.
{c1} | claims clerk | {p1} | Claims at {c1} go to {p1}.
Someone scratched my car. What's the hotline of the insurer?

user | cleaner | {p1} | Cleaner at the user's flat: {p1}.
{p1} | mother tongue | Tamil | {p1}, mother tongue Tamil.
In which language should I leave a note for the cleaner?

user | nephew | {p1} | Nephew of the user: {p1}.
{p1} | university | University of {t1} | {p1} studies at the University of {t1}.
University of {t1} | rector | {p2} | Rector of the University of {t1}: {p2}.
Who is rector of the university where my nephew studies?

user | bank | {c1} | The user banks with {c1}.
{c1} | adviser | {p1} | Adviser at {c1}: {p1}.
{p1} | direct line | {n1} {n2} | Direct line of {p1}: {n1} {n2}.
What's the direct line of my adviser at the bank?

user | bicycle | {k1} Tourer | Bicycle of the user: {k1} Tourer.
{k1} Tourer | tyre pressure | 4.5 bar | {k1} Tourer: tyres at 4.5 bar.
How hard should I pump the tyres of my bicycle?

user | midwife | {p1} | Midwife: {p1} (for the user).
{p1} | stand-in | {p2} | When {p1} is away: {p2} as stand-in.
{p2} | mobile number | {n1} {n2} | {p2}, mobile {n1} {n2}.
If the midwife is away, which number do I call?

{k1} release | release manager | {p1} | Release {k1} is managed by {p1}.
{p1} | time zone | UTC+9 | {p1} works in UTC+9.
In what time zone is the manager of the {k1} release?

user | allotment | {k1} Gardens | Allotment of the user: {k1} Gardens.
{k1} Gardens | chairwoman | {p1} | Chairwoman of {k1} Gardens: {p1}.
{p1} | dog breed | whippet | {p1} keeps a whippet.
What breed is the dog of the chairwoman of our allotment?

user | godfather | {p1} | Godfather of the user: {p1}.
{p1} | retirement home | {k1} Lodge | {p1} lives in the home {k1} Lodge.
{k1} Lodge | visiting hours | 2 to 5 pm | {k1} Lodge, visits from 2 to 5 pm.
When can I visit my godfather at his home?

user | mentor | {p1} | Mentor of the user: {p1}.
{p1} | podcast | {k1} Hour | Podcast by {p1}: {k1} Hour.
What's the name of the podcast that my mentor makes?
"""

SPOKEN = """
user | Oma | {p1} | Seine Oma heißt {p1}.
{p1} | Pflegeheim | Haus {k1} | {p1} wohnt im Pflegeheim Haus {k1}.
Haus {k1} | Besuchszeit | 15 bis 17 Uhr | Ins Haus {k1} darf man von 15 bis 17 Uhr.
Wann darf ich Oma im Pflegeheim besuchen?

user | Bruder | {p1} | Er hat einen Bruder, {p1}.
{p1} | Freundin | {p2} | {p1} ist mit {p2} zusammen.
{p2} | Allergie | Haselnüsse | {p2} verträgt keine Haselnüsse.
Mein Bruder bringt seine Freundin zum Essen mit, verträgt sie alles?

user | Bank | {c1} | Sein Konto hat er bei der {c1}.
{c1} | Berater | {p1} | Bei der {c1} berät ihn {p1}.
Wer berät mich bei meiner Bank?

user | Friseurin | {p1} | Die Haare schneidet ihm {p1}.
{p1} | Salon | Salon {k1} | {p1} hat den Salon {k1}.
Salon {k1} | Ruhetag | Mittwoch | Salon {k1} hat mittwochs zu.
Wann hat der Salon meiner Friseurin zu?

user | Fahrrad | {k1} | Sein Fahrrad ist ein {k1}.
{k1} | Reifendruck | 4 bar | Das {k1} braucht 4 bar.
Wie viel bar brauchen die Reifen an meinem Fahrrad?

user | Trainer | {p1} | Beim Handball trainiert ihn {p1}.
{p1} | Urlaub | bis 3. August | {p1} ist bis 3. August weg.
Bis wann ist mein Trainer im Urlaub?

user | Tochter | {p1} | Seine Tochter ist die {p1}.
{p1} | Kindergarten | Kita {k1} | {p1} geht in die Kita {k1}.
Kita {k1} | Leiterin | {p2} | In der Kita {k1} ist {p2} die Leiterin.
Wie heißt die Leiterin vom Kindergarten meiner Tochter?

user | Versicherung | {c1} | Versichert ist er bei der {c1}.
{c1} | Hotline | 0800 {n1} | Die {c1} hat die Hotline 0800 {n1}.
Mir ist einer ins Auto gefahren, welche Hotline hat meine Versicherung?

user | Patenkind | {p1} | Sein Patenkind heißt {p1}.
{p1} | Lieblingstier | Axolotl | {p1} liebt Axolotl.
Was ist das Lieblingstier von meinem Patenkind?

user | Hausverwaltung | {c1} | Das Haus verwaltet die {c1}.
{c1} | Hausmeister | {p1} | Die {c1} schickt {p1} als Hausmeister.
{p1} | Handynummer | {n1} {n2} | {p1} geht unter {n1} {n2} ans Handy.
Die Heizung ist kalt: Welche Handynummer hat der Hausmeister der Verwaltung?

user | Schwager | {p1} | {p1} ist sein Schwager.
{p1} | Gasthof | Zum {k1} | {p1} führt den Gasthof Zum {k1}.
Zum {k1} | Spezialität | Forelle blau | Im Zum {k1} gibt es Forelle blau.
Was ist die Spezialität im Gasthof von meinem Schwager?

Migration {k1} | Leiter | {p1} | Die Migration {k1} leitet {p1}.
{p1} | Vertretung | {p2} | Für {p1} springt {p2} ein.
Wer vertritt den Leiter der Migration {k1}?

user | Segelschule | {c1} | Segeln lernt er bei der {c1}.
{c1} | Hafen | {t1} | Die {c1} liegt im Hafen von {t1}.
{t1} | Hafenmeister | {p1} | Hafenmeister in {t1} ist {p1}.
Wer ist der Hafenmeister bei meiner Segelschule?

user | Kollegin | {p1} | {p1} ist seine Kollegin im Labor.
{p1} | Geburtstag | 11. Dezember | {p1} feiert am 11. Dezember Geburtstag.
Wann hat meine Kollegin Geburtstag?
"""

# What else is said of people, companies and towns, those of the chains among them, and of the user.
AROUND = {
    "nouns": """
{p} | friend | {p2} | {p} is a friend of {p2}.
{p} | hobby | {h} | {p}'s hobby is {h}.
{p} | home | {t} | {p} lives in {t}.
{p} | employer | {c} | {p} works at {c}.
{p} | birthday | {d} | {p} was born on {d}.
{p} | favourite drink | {f} | {p}'s favourite drink is {f}.
{p} | sister | {p2} | {p}'s sister is called {p2}.
{c} | founding year | {y} | {c} was founded in {y}.
{c} | city | {t} | {c} has its headquarters in {t}.
{c} | chief executive | {p} | {c} is led by {p}.
{c} | number of employees | {n} | {c} has {n} employees.
{t} | mayor | {p} | The mayor of {t} is {p}.
{t} | sight | {k} Castle | The sight of {t} is {k} Castle.
user | visited | {t} | The user visited {t} in {y}.
user | likes | {f} | The user likes {f}.
user | met | {p} | The user met {p} in {t}.
user | invoice | {n} | The user paid invoice {n} to {c}.
user | dislikes | {h} | The user does not care for {h}.
""",
    "verbs": """
{p} | knows | {p2} | For years {p} has known {p2}.
{p} | practises | {h} | In the evenings {p} practises {h}.
{p} | lives in | {t} | {t} is where {p} lives.
{p} | works for | {c} | {c} employs {p}.
{p} | celebrates on | {d} | On {d} {p} celebrates a birthday.
{p} | drinks | {f} | Nothing but {f} for {p}.
{p} | is married to | {p2} | {p} married {p2}.
{c} | exists since | {y} | Since {y} there has been {c}.
{c} | sits in | {t} | The offices of {c} are in {t}.
{c} | is led by | {p} | {p} leads {c}.
{c} | was bought by | {c2} | {c2} bought {c}.
{t} | is governed by | {p} | {p} governs {t}.
{t} | is known for | {k} Castle | Tourists come to {t} for {k} Castle.
user | went to | {t} | In {y} the user went to {t}.
user | enjoys | {f} | A glass of {f} pleases the user.
user | ran into | {p} | In {t} the user ran into {p}.
user | paid | {n} | Invoice {n} of {c} was paid by the user.
user | gave up | {h} | The user gave up {h} in {y}.
""",
    "german": """
{p} | Freund | {p2} | {p} ist mit {p2} befreundet.
{p} | Hobby | {h} | Das Hobby von {p} ist {h}.
{p} | Wohnort | {t} | {p} wohnt in {t}.
{p} | Arbeitgeber | {c} | {p} arbeitet bei {c}.
{p} | Geburtstag | {d} | {p} hat am {d} Geburtstag.
{p} | Lieblingsgetränk | {f} | {p} trinkt am liebsten {f}.
{p} | Schwester | {p2} | Die Schwester von {p} heißt {p2}.
{c} | Gründungsjahr | {y} | {c} wurde {y} gegründet.
{c} | Sitz | {t} | {c} hat den Sitz in {t}.
{c} | Leitung | {p} | {c} wird von {p} geleitet.
{c} | Mitarbeiter | {n} | {c} hat {n} Mitarbeiter.
{t} | Bürgermeister | {p} | Bürgermeister von {t} ist {p}.
{t} | Sehenswürdigkeit | Burg {k} | In {t} steht die Burg {k}.
user | besuchte | {t} | Der Benutzer war {y} in {t}.
user | mag | {f} | Der Benutzer mag {f}.
user | traf | {p} | Der Benutzer traf {p} in {t}.
user | Rechnung | {n} | Der Benutzer hat Rechnung {n} an {c} bezahlt.
user | mag nicht | {h} | Der Benutzer macht sich nichts aus {h}.
""",
    "notes": """
{p} | friend | {p2} | Friend of {p}: {p2}.
{p} | pastime | {h} | {p} spends weekends on {h}.
{p} | address | {k} Lane, {t} | {p}: {k} Lane, {t}.
{p} | company | {c} | {p}, on the payroll of {c}.
{p} | birthday | {d} | Birthday of {p}: {d}.
{p} | usual order | {f} | {p} orders {f}.
{p} | doctor | {p2} | Doctor of {p}: {p2}.
{c} | founded | {y} | {c}: founded {y}.
{c} | seat | {t} | {c}: seat in {t}.
{c} | owner | {p} | Owner of {c}: {p}.
{c} | hotline hours | until {n} | {c} answers calls, reference {n}.
{t} | mayor | {p} | Mayor of {t}: {p}.
{t} | sight | {k} Castle | {t}: see {k} Castle.
user | trip | {t} | Trip of the user to {t}, {y}.
user | likes | {f} | Liked by the user: {f}.
user | acquaintance | {p} | Met by the user in {t}: {p}.
user | receipt | {n} | Receipt {n} of {c} filed by the user.
user | avoids | {h} | Avoided by the user: {h}.
""",
    "spoken": """
{p} | Kumpel | {p2} | {p} und {p2} sind Kumpel.
{p} | Freizeit | {h} | In der Freizeit macht {p} gern {h}.
{p} | Wohnort | {t} | {p} lebt in {t}.
{p} | Firma | {c} | {p} schafft bei {c}.
{p} | Geburtstag | {d} | {p} feiert am {d} Geburtstag.
{p} | Getränk | {f} | {p} trinkt nur {f}.
{p} | Bruder | {p2} | {p} hat einen Bruder, {p2}.
{c} | gegründet | {y} | Die {c} gibt es seit {y}.
{c} | Stadt | {t} | Die {c} sitzt in {t}.
{c} | Chefin | {p} | Bei der {c} ist {p} die Chefin.
{c} | Kundennummer | {n} | Bei der {c} hat er die Kundennummer {n}.
{t} | Bürgermeisterin | {p} | In {t} ist {p} Bürgermeisterin.
{t} | Burg | {k} | Über {t} steht die Burg {k}.
user | war in | {t} | In {t} war er {y}.
user | mag | {f} | Er mag {f}.
user | kennt | {p} | {p} kennt er aus {t}.
user | Beleg | {n} | Den Beleg {n} von {c} hat er abgeheftet.
user | meidet | {h} | Um {h} macht er einen Bogen.
""",
}
LIVES = {"nouns": NOUNS, "verbs": VERBS, "german": GERMAN, "notes": NOTES, "spoken": SPOKEN}
TUNED_ON = ("nouns", "verbs", "german")
ABOUT_CHAIN = 4  # further facts for each name in a chain

FIRST = """
Agnes Bela Carlo Dorit Emre Fenja Gustl Hilde Ivo Jana Kolja Lotte Mirko Nadja Oskar Petra Quirin Runa
Silvan Tabea Urs Vroni Wanda Xaver Yara Zeno Anouk Benno Cosima Darius Elif Falk Greta Henrik Ines Jaro
"""
SYLLABLES = (
    "ba dor fen gal hum kir lom mar nes pol quin ras sel tov ulm vek wes yar zin tra bru lio"
)
HOBBIES = {
    "nouns": "chess judo pottery fencing baking rowing birdwatching origami",
    "verbs": "squash karate weaving archery juggling canoeing astronomy calligraphy",
    "german": "Schach Judo Töpfern Fechten Backen Rudern Kegeln Origami",
    "notes": "darts climbing quilting sailing gliding curling",
    "spoken": "Skat Klettern Häkeln Segeln Bouldern Eishockey",
}
DRINKS = {
    "nouns": "cocoa cider lemonade espresso buttermilk kombucha",
    "verbs": "sherry oolong ginger-ale tonic kefir mead",
    "german": "Kakao Apfelmost Limonade Espresso Buttermilch Spezi",
    "notes": "stout ginger-beer mocha chai horchata",
    "spoken": "Radler Bionade Mokka Eistee Mate",
}
DAYS = {
    "nouns": "{} July",
    "verbs": "{} October",
    "german": "{}. Juli",
    "notes": "{} May",
    "spoken": "{}. April",
}


class Chain(Struct, frozen=True):
    """A question, and the sentences that answer it together."""

    style: str
    question: str
    sentences: tuple[str, ...]

    @property
    def is_seen(self) -> bool:
        """Whether the choice was tuned on it."""
        return self.style in TUNED_ON


class Line(Struct, frozen=True):
    """A fact to be filled in."""

    subject: str
    relation: str
    value: str
    sentence: str

    def filled(self, names: Mapping[str, str]) -> tuple[str, Triple]:
        """Its sentence and its triple."""
        fields = (self.subject.format(**names), self.relation, self.value.format(**names))
        return self.sentence.format(**names), Triple(*fields)


class Life:
    """One invented user: chains, and facts around them until there are `size`."""

    def __init__(self, style: str, size: int = FACTS) -> None:
        self._style = style
        self._dice = random.Random(style)
        self._around = _lines(AROUND[style].strip())
        self._pools = {
            "p": [self._person() for _ in range(size // 8)],
            "c": [self._company() for _ in range(size // 16)],
            "t": [self._town() for _ in range(size // 25)],
        }
        self._known: dict[str, Triple] = {}
        self._named: list[tuple[str, str]] = []  # kinds and names of what the chains are about
        blocks = LIVES[style].strip().split("\n\n")
        self.chains = [self._chain(text) for text in blocks]
        for kind, name in self._named:
            self._say_more(kind, name)
        while len(self._known) < size:
            self._say(self._dice.choice(self._around), {})
        said = list(self._known.items())
        self._dice.shuffle(said)
        self.facts = tuple(_fact(number, *one) for number, one in enumerate(said))

    def _chain(self, block: str) -> Chain:
        text, _, question = block.rpartition("\n")
        names = {
            **{f"p{n}": self._person() for n in (1, 2)},
            **{f"c{n}": self._company() for n in (1, 2)},
            **{f"k{n}": self._word() for n in (1, 2)},
            **{f"n{n}": str(self._dice.randint(111, 8999)) for n in (1, 2)},
            "t1": self._town(),
        }
        said = dict(line.filled(names) for line in _lines(text))
        self._known |= said
        used = [(key[0], name) for key, name in names.items() if f"{{{key}}}" in text]
        self._named += [(kind, name) for kind, name in used if kind in self._pools]
        return Chain(self._style, question.format(**names), tuple(said))

    def _say_more(self, kind: str, name: str) -> None:
        """Further facts of something in a chain, none of which says one of its relations anew."""
        said = {triple.relation for triple in self._known.values() if triple.subject == name}
        fit = [one for one in self._around if one.subject == f"{{{kind}}}"]
        fit = [one for one in fit if one.relation not in said]
        for line in self._dice.sample(fit, min(ABOUT_CHAIN, len(fit))):
            self._say(line, {kind: name})

    def _say(self, line: Line, names: Mapping[str, str]) -> None:
        style, dice = self._style, self._dice
        pools = {kind: dice.choice(pool) for kind, pool in self._pools.items()}
        others = {f"{kind}2": dice.choice(pool) for kind, pool in self._pools.items()}
        things = {
            "k": self._word(),
            "n": str(dice.randint(1000, 9999)),
            "y": str(dice.randint(1950, 2025)),
            "h": dice.choice(HOBBIES[style].split()),
            "f": dice.choice(DRINKS[style].split()),
            "d": DAYS[style].format(dice.randint(1, 28)),
        }
        text, triple = line.filled(pools | others | things | dict(names))
        self._known.setdefault(text, triple)

    def _person(self) -> str:
        return f"{self._dice.choice(FIRST.split())} {self._word()}"

    def _company(self) -> str:
        return f"{self._word()} {'GmbH' if self._style in ('german', 'spoken') else 'Ltd'}"

    def _town(self) -> str:
        return f"{self._word()}burg"

    def _word(self) -> str:
        return "".join(self._dice.sample(SYLLABLES.split(), 3)).capitalize()


def _lines(text: str) -> list[Line]:
    return [Line(*(part.strip() for part in line.split("|"))) for line in text.split("\n")]


def _fact(number: int, text: str, triple: Triple) -> Fact:
    since = NOW - timedelta(days=number % 700)
    source = FactSource.EXTRACTED
    return Fact(f"{number:08x}", text, Category.PERSONAL, source, 0.6, since, since, triple=triple)
