"""The English and German words of the generated text (``mt_scaffold.experiment.data.synthetic``), with their forms.

A noun is "ENGLISH[/PLURAL] = GERMAN GENDER PLURAL"; "m*" declines like "der Junge, den Jungen". A verb is
"ENGLISH[/PAST] = STEM [THIRD PERSON [PAST]] [+PREFIX]"; weak verbs need no forms. An adjective is
"ENGLISH[/COMPARATIVE] = STEM [COMPARATIVE STEM]". Entries end in semicolons or line breaks.
"""

from __future__ import annotations

PERSONS = """
man/men = Mann m Männer; woman/women = Frau f Frauen; child/children = Kind n Kinder; girl = Mädchen n Mädchen
boy = Junge m* Jungen; teacher = Lehrer m Lehrer; farmer = Bauer m* Bauern; baker = Bäcker m Bäcker
doctor = Arzt m Ärzte; neighbour = Nachbar m* Nachbarn; gardener = Gärtner m Gärtner; painter = Maler m Maler
fisherman/fishermen = Fischer m Fischer; nurse = Krankenschwester f Krankenschwestern
sister = Schwester f Schwestern; brother = Bruder m Brüder; mother = Mutter f Mütter; father = Vater m Väter
daughter = Tochter f Töchter; son = Sohn m Söhne; friend = Freund m Freunde; guest = Gast m Gäste
king = König m Könige; queen = Königin f Königinnen; aunt = Tante f Tanten; uncle = Onkel m Onkel
cook = Koch m Köche; judge = Richter m Richter; student = Student m* Studenten; pupil = Schüler m Schüler
driver = Fahrer m Fahrer; writer = Schriftsteller m Schriftsteller; singer = Sänger m Sänger
tailor = Schneider m Schneider; shoemaker = Schuster m Schuster; hunter = Jäger m Jäger
merchant = Händler m Händler; mayor = Bürgermeister m Bürgermeister
policeman/policemen = Polizist m* Polizisten; visitor = Besucher m Besucher; seller = Verkäufer m Verkäufer
craftsman/craftsmen = Handwerker m Handwerker
"""
ANIMALS = """
dog = Hund m Hunde; cat = Katze f Katzen; horse = Pferd n Pferde; bird = Vogel m Vögel; cow = Kuh f Kühe
pig = Schwein n Schweine; goat = Ziege f Ziegen; mouse/mice = Maus f Mäuse; fox = Fuchs m Füchse
wolf/wolves = Wolf m Wölfe; hen = Henne f Hennen; duck = Ente f Enten; rabbit = Kaninchen n Kaninchen
squirrel = Eichhörnchen n Eichhörnchen; butterfly = Schmetterling m Schmetterlinge; bee = Biene f Bienen
donkey = Esel m Esel; swan = Schwan m Schwäne; lion = Löwe m* Löwen; bear = Bär m* Bären; owl = Eule f Eulen
calf/calves = Kalb n Kälber; hedgehog = Igel m Igel
"""
FOOD = """
apple = Apfel m Äpfel; pear = Birne f Birnen; egg = Ei n Eier; cake = Kuchen m Kuchen; soup = Suppe f Suppen
plum = Pflaume f Pflaumen; cherry = Kirsche f Kirschen; potato = Kartoffel f Kartoffeln
sausage = Wurst f Würste; nut = Nuss f Nüsse; carrot = Möhre f Möhren; onion = Zwiebel f Zwiebeln
"""
READABLE = """
book = Buch n Bücher; letter = Brief m Briefe; newspaper = Zeitung f Zeitungen; story = Geschichte f Geschichten
poem = Gedicht n Gedichte; contract = Vertrag m Verträge; list = Liste f Listen; report = Bericht m Berichte
"""
# Things that open and close; door, window and gate also in compounds.
CONTAINERS = """
box = Kiste f Kisten; bag = Tasche f Taschen; cupboard = Schrank m Schränke; drawer = Schublade f Schubladen
bottle = Flasche f Flaschen; suitcase = Koffer m Koffer; basket = Korb m Körbe; parcel = Paket n Pakete
door = Tür f Türen; window = Fenster n Fenster; gate = Tor n Tore
"""
THINGS = """
key = Schlüssel m Schlüssel; table = Tisch m Tische; chair = Stuhl m Stühle; lamp = Lampe f Lampen
clock = Uhr f Uhren; picture = Bild n Bilder; glass = Glas n Gläser; plate = Teller m Teller
cup = Tasse f Tassen; knife/knives = Messer n Messer; spoon = Löffel m Löffel; fork = Gabel f Gabeln
bicycle = Fahrrad n Fahrräder; car = Auto n Autos; boat = Boot n Boote; coat = Mantel m Mäntel
shoe = Schuh m Schuhe; hat = Hut m Hüte; shirt = Hemd n Hemden; ring = Ring m Ringe; chain = Kette f Ketten
flower = Blume f Blumen; stone = Stein m Steine; tool = Werkzeug n Werkzeuge; hammer = Hammer m Hämmer
rope = Seil n Seile; ladder = Leiter f Leitern; bucket = Eimer m Eimer; mirror = Spiegel m Spiegel
carpet = Teppich m Teppiche; bed = Bett n Betten; pillow = Kissen n Kissen; blanket = Decke f Decken
lock = Schloss n Schlösser; map = Karte f Karten; ticket = Fahrkarte f Fahrkarten; camera = Kamera f Kameras
doll = Puppe f Puppen; ball = Ball m Bälle; guitar = Gitarre f Gitarren; violin = Geige f Geigen
drum = Trommel f Trommeln; candle = Kerze f Kerzen; pot = Topf m Töpfe; pan = Pfanne f Pfannen
towel = Handtuch n Handtücher; umbrella = Regenschirm m Regenschirme; wheel = Rad n Räder
machine = Maschine f Maschinen; bowl = Schüssel f Schüsseln; brush = Bürste f Bürsten; needle = Nadel f Nadeln
button = Knopf m Knöpfe
"""
# Places where somebody can be.
PLACES = """
house = Haus n Häuser; kitchen = Küche f Küchen; garden = Garten m Gärten; school = Schule f Schulen
town = Stadt f Städte; village = Dorf n Dörfer; forest = Wald m Wälder; library = Bibliothek f Bibliotheken
shop = Laden m Läden; hotel = Hotel n Hotels; museum = Museum n Museen; church = Kirche f Kirchen
hospital = Krankenhaus n Krankenhäuser; restaurant = Restaurant n Restaurants; office = Büro n Büros
room = Zimmer n Zimmer; cellar = Keller m Keller; barn = Scheune f Scheunen; factory = Fabrik f Fabriken
theatre = Theater n Theater; station = Bahnhof m Bahnhöfe; park = Park m Parks; palace = Palast m Paläste
harbour = Hafen m Häfen; bakery = Bäckerei f Bäckereien; workshop = Werkstatt f Werkstätten
stable = Stall m Ställe; courtyard = Hof m Höfe; tower = Turm m Türme; cave = Höhle f Höhlen
valley = Tal n Täler
"""
# First parts of compounds, "ENGLISH = GERMAN": sites, openings (the middle of triple compounds), materials.
SITES = """
house = Haus; garden = Garten; kitchen = Küchen; school = Schul; town = Stadt; village = Dorf; church = Kirchen
hotel = Hotel; office = Büro; cellar = Keller; station = Bahnhofs; factory = Fabrik; theatre = Theater
harbour = Hafen; museum = Museums; stable = Stall; shop = Laden; palace = Palast
"""
OPENINGS = """
door = Tür; window = Fenster; gate = Tor
"""
MATERIALS = """
wooden = Holz; glass = Glas; stone = Stein; iron = Eisen; silver = Silber; leather = Leder; paper = Papier
gold = Gold
"""
# Last parts of these compounds.
SITE_HEADS = """
door = Tür f Türen; window = Fenster n Fenster; gate = Tor n Tore; key = Schlüssel m Schlüssel
lamp = Lampe f Lampen; clock = Uhr f Uhren; wall = Mauer f Mauern; roof = Dach n Dächer; table = Tisch m Tische
bench = Bank f Bänke; bell = Glocke f Glocken; fence = Zaun m Zäune; sign = Schild n Schilder
chair = Stuhl m Stühle; cupboard = Schrank m Schränke
"""
OPENING_HEADS = """
key = Schlüssel m Schlüssel; lock = Schloss n Schlösser; handle = Griff m Griffe; frame = Rahmen m Rahmen
"""
MATERIAL_HEADS = """
bowl = Schüssel f Schüsseln; ring = Ring m Ringe; chain = Kette f Ketten; box = Kiste f Kisten
spoon = Löffel m Löffel; door = Tür f Türen; gate = Tor n Tore; bag = Tasche f Taschen; flower = Blume f Blumen
bench = Bank f Bänke; plate = Teller m Teller; ball = Ball m Bälle; button = Knopf m Knöpfe
table = Tisch m Tische
"""

# Verbs that take any thing as their object.
HANDLE = """
buy/bought = kauf; sell/sold = verkauf; find/found = find findet fand; carry = trag trägt trug
draw/drew = zeichn; need = brauch; forget/forgot = vergess vergisst vergaß; lose/lost = verlier verliert verlor
wash = wasch wäscht wusch; build/built = bau; steal/stole = stehl stiehlt stahl; borrow = leih leiht lieh +aus
give/gave back = geb gibt gab +zurück; unpack = pack +aus; choose/chose = such +aus
describe = beschreib beschreibt beschrieb; praise = lob; admire = bewunder; lift = heb hebt hob +hoch
push = schieb schiebt schob; hold/held = halt hält hielt; measure = mess misst maß; clean = putz
repair = reparier; paint = streich streicht strich +an; hide/hid = versteck; pick up = heb hebt hob +auf
put/put away = räum +weg; throw/threw away = werf wirft warf +weg; hang/hung up = häng +auf
take/took along = nehm nimmt nahm +mit; bring/brought back = bring bringt brachte +zurück; turn over = dreh +um
prepare = bereit +vor; look for = such; see/saw = seh sieht sah; show off = führ +vor
break/broke = zerbrech zerbricht zerbrach
"""
EAT = """
eat/ate = ess isst aß; taste = probier; peel = schäl; share = teil
cut/cut up = schneid schneidet schnitt +klein
"""
READ = """
read/read = les liest las; write/wrote = schreib schreibt schrieb; copy = schreib schreibt schrieb +ab
sign = unterschreib unterschreibt unterschrieb; read/read out = les liest las +vor; translate = übersetz
"""
OPEN = """
open = mach +auf; close = mach +zu; lock = schließ schließt schloss +ab; unlock = schließ schließt schloss +auf
"""
# Verbs that take a person or an animal: in the accusative (MEET), in the dative (HELP), with a thing as well (GIVE).
MEET = """
see/saw = seh sieht sah; visit = besuch; meet/met = treff trifft traf; know/knew = kenn kennt kannte
call up = ruf ruft rief +an; collect = hol +ab; invite = lad lädt lud +ein; greet = begrüß; hear/heard = hör
love = lieb; watch = beobacht; wake/woke up = weck +auf; comfort = tröst; laugh at = lach +aus
find/found = find findet fand; paint = mal; look for = such; miss = vermiss; look at = seh sieht sah +an
admire = bewunder; praise = lob
"""
HELP = """
help = helf hilft half; thank = dank; follow = folg; listen to = hör +zu; answer = antwort; trust = vertrau
forgive/forgave = verzeih verzeiht verzieh; congratulate = gratulier
"""
GIVE = """
give/gave = geb gibt gab; show = zeig; bring/brought = bring bringt brachte; sell/sold = verkauf
send/sent = schick; lend/lent = leih leiht lieh; promise = versprech verspricht versprach
offer = biet bietet bot +an
"""
# Verbs without an object.
ACT = """
sleep/slept = schlaf schläft schlief; sing/sang = sing singt sang; laugh = lach; work = arbeit; wait = wart
dance = tanz; swim/swam = schwimm schwimmt schwamm; arrive = komm kommt kam +an
get/got up = steh steht stand +auf; leave/left = geh geht ging +weg; come/came back = komm kommt kam +zurück
fall/fell asleep = schlaf schläft schlief +ein; run/ran = lauf läuft lief; sit/sat = sitz sitzt saß
play = spiel; dream = träum; smile = lächel; lie/lay = lieg liegt lag; run/ran away = lauf läuft lief +weg
freeze/froze = frier friert fror; stop/stopped = halt hält hielt +an
"""
# Verbs with a clause as their object.
THINK = """
believe = glaub; say/said = sag; hope = hoff; think/thought = denk denkt dachte; see/saw = seh sieht sah
hear/heard = hör; dream = träum; notice = merk; feel/felt = fühl
"""
# Adjectives for anybody or anything, for people and animals, for things and places.
ANY_ADJECTIVES = """
old/older = alt ält; small/smaller = klein; large/larger = groß größ; beautiful = schön; strange = seltsam
famous = berühmt; clean/cleaner = sauber; dirty/dirtier = schmutzig; wet/wetter = nass; lovely/lovelier = hübsch
important = wichtig; known = bekannt; new/newer = neu; unusual = ungewöhnlich
"""
BEING_ADJECTIVES = """
young/younger = jung jüng; friendly/friendlier = freundlich; happy/happier = glücklich; careful = vorsichtig
quiet/quieter = leis; tired = müd; hungry/hungrier = hungrig; clever/cleverer = klug klüg; brave/braver = tapfer
lazy/lazier = faul; strong/stronger = stark stärk; weak/weaker = schwach schwäch; rich/richer = reich
poor/poorer = arm ärm; polite = höflich; loyal = treu; patient = geduldig; curious = neugierig
thirsty/thirstier = durstig; serious = ernst
"""
THING_ADJECTIVES = """
red = rot; green = grün; white = weiß; black = schwarz; blue = blau; yellow = gelb; brown = braun; grey = grau
heavy/heavier = schwer; light/lighter = leicht; cheap/cheaper = billig; expensive = teur; thin/thinner = dünn
thick/thicker = dick; long/longer = lang läng; short/shorter = kurz kürz; broad/broader = breit
narrow/narrower = schmal; round = rund; cold/colder = kalt kält; warm/warmer = warm wärm; colourful = bunt
simple/simpler = einfach; dry/drier = trocken
"""
# Adjectives whose opposites begin with "un" in both languages.
NEGATABLE = ("friendly", "happy", "known", "important")
NAMES = """
Anna Peter Maria Thomas Lena Paul Clara Martin Julia Felix Emma Robert Sophie David Laura Simon Nora Max Eva
Jonas
""".split()
