"""What the demo set takes from each source: which questions, which page the unanswerable ones lack, which distract."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chosen:
    """One question of the demo set.

    Attributes:
        key: the id of the record, or table, in its source.
        left_out: gold pages that the set lacks, which makes the question unanswerable.
        distractors: further pages of the same record of HotpotQA; by default its two shortest.
        question, answer: where ours stand instead of the source's.
    """

    id: str
    key: str
    left_out: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""


HOTPOTQA = (
    Chosen("tennis-born-first", "5a7ca0ef55429907fabeefd3",
           distractors=("Andrea Hlaváčková", "Nataša Zorić", "Serena Williams")),
    Chosen("railway-edinburgh", "5ac562985542993e66e823ca",
           distractors=("Edinburgh Waverley railway station", "Krishna railway station", "Habra railway station")),
    Chosen("sas-founded", "5ab5487b554299494045ef68",
           distractors=("Special Operations Force (Singapore)", "Giretsu Kuteitai", "Cuerpo de Fuerzas Especiales")),
    Chosen("bisquick-state", "5adeb78a554299728e26c77a", left_out=("General Mills",),
           distractors=("Hyundai Motor Group", "Toyota", "Juki")),
    Chosen("accession-opposite", "5a7a5b3a5542996c55b2dd71", left_out=("Mark Masons' Hall, London",),
           distractors=("Accession Council", "Pollokshields Burgh Hall", "Great Hall of the People")),
)

CLAPNQ = (
    Chosen("london-bridge-now", "4988326746697423597", answer="Lake Havasu City, Arizona"),
    Chosen("wellington-island", "-3119678287930545077", answer="the North Island"),
    Chosen("fire-triangle", "-3301882905827031751", answer="heat, fuel, and an oxidizing agent"),
    Chosen("hawaii-peak", "-823486921735600719", left_out=("Mauna Kea",), answer="Mauna Kea"),
)
CLAPNQ_PAGES = ("-5334327453087093295", "-3264674982292768799", "-3913791558291967751")

TABFACT = (
    Chosen("standard-bank-floors", "2-14669089-2.html.csv", answer="34",
           question="How many floors does the Standard Bank Building in Johannesburg have?"),
    Chosen("miss-lemon-actor", "2-10831820-1.html.csv", answer="Pauline Moran",
           question="Which actor plays the secretary Felicity Lemon in Agatha Christie's Poirot?"),
    Chosen("spearmon-time", "2-18569011-14.html.csv", answer="20.39", left_out=("the whole table",),
           question="What time did Wallace Spearmon run in the men's 200 metres at the 2008 Summer Olympics?"),
)
TABFACT_PAGES = ("2-18662685-8.html.csv", "1-29395291-2.html.csv")

# The twelve above come first in the file; of those below two answerable ones and one unanswerable one take turns.
MORE_HOTPOTQA = (
    Chosen("viva-acronym", "5a7613c15542994ccc9186bf"),
    Chosen("park-animation", "5a7180205542994082a3e856"),
    Chosen("binion-father", "5a9064c755429916514e74a6"),
    Chosen("lonely-cover-band", "5a881d2355429938390d3eeb"),
    Chosen("stronger-together-state", "5a845d735542996488c2e52e"),
    Chosen("rastriya-degree", "5a7c49dc55429935c91b514f"),
    Chosen("lollipop-spinoff", "5abe364e5542993f32c2a08e"),
    Chosen("shallows-award", "5ab28a87554299449642c8ec"),
    Chosen("antic-overlap", "5adff056554299603e4183cc"),
    Chosen("trophy-culture", "5a7b537555429927d897bf90"),
    Chosen("opry-mills", "5ab7f97a5542991d322237ef"),
    Chosen("tunisia-world-cup", "5ab6f7415542991d322236f4"),
    Chosen("lovelight-born", "5ae66d515542992ae0d16346"),
    Chosen("pizza-north", "5a7f7b3b5542992097ad2f81"),
    Chosen("shaw-community", "5ac532335542994611c8b41c"),
    Chosen("beer-wars-escondido", "5adcbb815542994ed6169bde"),
    Chosen("ali-houston", "5ab915ad55429919ba4e239c"),
    Chosen("kyttanen-museum", "5ac3af895542995ef918c1f0"),
    Chosen("georgia-mascot", "5a776fc15542997042120a3a"),
    Chosen("croft-developer", "5a80071f5542992bc0c4a684"),
    Chosen("silverdale-project", "5ae08a0455429924de1b70fc"),
    Chosen("missouri-facility", "5ab484415542990594ba9c44"),
    Chosen("filmed-first", "5a716ec85542994082a3e82d"),
    Chosen("elliot-schools", "5abba3cd554299642a094aee"),
    Chosen("sayreville-band", "5a8a5a1955429930ff3c0da7"),
    Chosen("all-star-arena", "5ae7535c5542997b22f6a6d8"),
    Chosen("gator-country-band", "5adf1b8a5542995534e8c750"),
    Chosen("wolf-sheep-festival", "5ade4801554299728e26c6ab"),
    Chosen("dodgers-rookie", "5a79caad5542994f819ef09f"),
    Chosen("maroon-vocalist", "5a83a31c554299123d8c2179"),
    Chosen("southampton-born", "5ae4a1ef55429970de88d9e7", left_out=("Mauricio Pochettino",)),
    Chosen("baer-stadium", "5a7dc3275542997cc2c4749c", left_out=("UNLV Rebels football",)),
    Chosen("gile-airport", "5ae67def5542991bbc9760f3", left_out=("Flydubai",)),
    Chosen("grown-ups-role", "5add596f5542990dbb2f7e4d", left_out=("Sam Kelly",)),
    Chosen("speed-of-sound-cover", "5ab94fa25542996be2020474", left_out=("X&amp;Y",)),
    Chosen("celene-role", "5ae1e22a5542997f29b3c160", left_out=("Tricia Helfer",)),
    Chosen("rome-protocols-coup", "5abdd0f15542991f6610604d", left_out=("Engelbert Dollfuss",)),
    Chosen("revenge-distributor", "5a72830e5542994cef4bc2f9", left_out=("Empire Distribution",)),
    Chosen("heskin-director", "5ae789615542997ec2727695", left_out=("The Prince and Me",)),
    Chosen("oxenbould-director", "5a81e107554299676cceb12a", left_out=("The Visit (2015 American film)",)),
    Chosen("titulescu-founded", "5ac2758b55429963665199c3", left_out=("League of Nations",)),
    Chosen("first-governor", "5adfdef9554299025d62a36b", left_out=("William King (governor)",)),
    Chosen("merry-christmas-group", "5abaca935542996606241610", left_out=("Straight No Chaser (group)",)),
    Chosen("arledge-director", "5ab3ede755429976abd1bcf4", left_out=("The Grapes of Wrath (film)",)),
    Chosen("comic-girl-college", "5ae199305542997b2ef7d20e", left_out=("Savannah College of Art and Design",)),
    Chosen("fitzclarence-birthday", "5ab58f9a554299488d4d99da", left_out=("Dorothea Jordan",)),
)

MORE_CLAPNQ = (
    Chosen("mr-black-singers", "7321027163416439028", answer="The Kingston Trio"),
    Chosen("sirens", "-1381572815481993720", answer="three women washing clothes and singing"),
    Chosen("french-polynesia", "-4857752479481038518", answer="the South Pacific Ocean"),
    Chosen("reducing-sugar", "-3962441978670574417", answer="Benedict's reagent"),
    Chosen("moai-direction", "7468794414379661050", answer="inland"),
    Chosen("segovia-name", "-7492408127458093340", answer="Celtiberian"),
    Chosen("ash-wednesday", "8788710882010892431", answer="palm branches"),
    Chosen("elephant-in-the-room", "7702074066435630197",
           answer="an obvious problem or risk that no one wants to discuss"),
    Chosen("safe-haven", "-3135281716449062067", answer="Southport, North Carolina"),
    Chosen("chucky-first", "-3264674982292768799", answer="November 9, 1988"),
    Chosen("o2-part-of-london", "-5334327453087093295", answer="the Greenwich peninsula"),
    Chosen("narmada-location", "-3913791558291967751", answer="central India"),
    Chosen("jethalal", "-5352303832848103685", left_out=("Dilip Joshi",), answer="Dilip Joshi"),
    Chosen("plankton-voice", "-1109485827985534106", left_out=("Mr. Lawrence",), answer="Mr. Lawrence"),
    Chosen("largest-lake", "3788845239430619383", left_out=("Lake Kariba",), answer="between Zambia and Zimbabwe"),
    Chosen("fooled-around", "-8400502352454998371", left_out=("Fooled Around and Fell in Love",),
           answer="Mickey Thomas"),
    Chosen("rosario", "-3066832486070706632", left_out=("Shelley Morrison",), answer="Shelley Morrison"),
    Chosen("story-of-an-artist", "4766418881317162187", left_out=("Daniel Johnston",), answer="Daniel Johnston"),
)

MORE_TABFACT = (
    Chosen("velocette-rider", "2-10301911-2.html.csv", answer="Brian Finch",
           question="Who rode a Velocette at the 1970 Isle of Man TT?"),
    Chosen("whiteway-speed", "2-10301911-2.html.csv", answer="89.94 mph",
           question="At what speed did Frank Whiteway ride at the 1970 Isle of Man TT?"),
    Chosen("bedser-wickets", "2-16570286-3.html.csv", answer="18",
           question="How many wickets did Alec Bedser take in the 1948 Ashes series?"),
    Chosen("best-bowling", "2-16570286-3.html.csv", answer="Ray Lindwall",
           question="Which bowler of the 1948 Ashes series had the best bowling figures, 6 / 20?"),
    Chosen("rings-winner", "2-18662019-2.html.csv", answer="Chen Yibing",
           question="Which gymnast came first on the men's rings at the 2008 Summer Olympics?"),
    Chosen("judo-total", "2-15807932-2.html.csv", answer="12",
           question="How many medals in total did Japan win at the 1967 World Judo Championships?"),
    Chosen("united-attendance", "2-13167639-5.html.csv", answer="74500",
           question="How many people saw Manchester United's final against Liverpool on 2 March 2003?"),
    Chosen("ellis-college", "2-11677760-30.html.csv", answer="Kansas",
           question="For which college did Perry Ellis of the USA Today All-USA high school team play?"),
    Chosen("weatherspoon-college", "2-15198842-45.html.csv", answer="Missouri",
           question="From which college did the Atlanta Falcons draft Sean Weatherspoon?"),
    Chosen("cuba-sculls", "2-18662685-8.html.csv", answer="6:40.15",
           question="What time did Cuba row in the men's lightweight double sculls at the 2008 Summer Olympics?"),
    Chosen("djezzy-subscribers", "1-29395291-2.html.csv", answer="10531",
           question="How many thousand subscribers did Djezzy have in Algeria in 2006?"),
    Chosen("pretty-mess", "2-1023439-2.html.csv", answer="15",
           question="What place did Vanity's Pretty Mess reach on the US R&B chart?"),
    Chosen("watts-open", "2-10167122-1.html.csv", answer="7",
           question="In how many Open Championships did the golfer Brian Watts play?"),
    Chosen("birmingham-cup", "2-17437287-6.html.csv", answer="Watford",
           question="Which team won 3-1 at Birmingham City in the FA Cup of 1983-84?"),
    Chosen("cueto-palermo", "2-17086086-2.html.csv", answer="Barbara Paulus", left_out=("the whole table",),
           question="Whom did Isabel Cueto beat in the final at Palermo in July 1990?"),
    Chosen("zakspeed-engine", "2-1219581-1.html.csv", answer="Yamaha V8", left_out=("the whole table",),
           question="Which engine did Zakspeed's Formula One car have in 1989?"),
    Chosen("halford-chassis", "2-1228251-1.html.csv", answer="Lotus 16", left_out=("the whole table",),
           question="Which chassis did the racing driver Bruce Halford drive in 1959?"),
    Chosen("voskoboeva-final", "2-15272585-8.html.csv", answer="Oleksandra Kravets", left_out=("the whole table",),
           question="Whom did Galina Voskoboeva beat in the final at Mont-de-Marsan in June 2003?"),
    Chosen("pizzolato-time", "2-15399415-1.html.csv", answer="2:11:34", left_out=("the whole table",),
           question="In what time did Orlando Pizzolato win the New York City Marathon of 1985?"),
    Chosen("fox-electorate", "1-27592654-2.html.csv", answer="Rangitiki", left_out=("the whole table",),
           question="Which electorate did William Fox have in the 3rd New Zealand Parliament?"),
)
