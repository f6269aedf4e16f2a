"""Word lists: abbreviations that do not end a sentence, words that open one, and words that carry no content."""

from __future__ import annotations

from functools import lru_cache


def words_of(words: str) -> frozenset[str]:
    """Read a list of words with blanks between."""
    return frozenset(words.split())


# Always followed by the rest of the sentence.
ABBREVIATIONS = words_of(
    """dr mr mrs ms mx prof rev hon st mt gen col capt sgt lt maj cmdr adm sen rep gov pres fr sr sra srta dra ud uds
    mme mlle mgr e.g i.e eg ie vs v cf viz approx ca al dept est ext bzw z.b d.h u.a evtl ggf inkl abb bspw bl s.a
    p.ex n.b jan feb mar apr jun jul aug sept sep oct nov dec"""
)
# Ends a sentence if a capital follows.
TRAILING_ABBREVIATIONS = words_of("etc inc ltd co corp llc jr bros a.m p.m am pm usw min max ed eds")
# After "U.S." or "Vitamin C." only these words open a new sentence; any other capital may be a name.
OPENERS = words_of(
    """The A An This That These Those It Its He She They We You I In On At By For From With Without As If When While
    Where Who What Why How There Here However Therefore Thus Hence Moreover Furthermore Additionally Also But And Or So
    Yet After Before During Since Because Although Though Both Each Every Some Many Most All No Not His Her Their Our
    Your My To Under Over Other Another Such According Based Overall Finally First Second Third Then Once Until Unlike
    Der Die Das Ein Eine Es Er Sie Wir Und Aber Im In Le La Les Un Une Il Elle El Los Las"""
)

_ENGLISH = """a about above after again against all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each either etc few for from further get had has have
having he her here hers herself him himself his how however i if in into is it its itself just may me might more most
much must my myself no nor not of off on once only onto or other our ours ourselves out over own per same shall she
should so some such than that the their theirs them themselves then there therefore these they this those through thus
to too under until up upon us very was we were what when where whether which while who whom whose why will with within
without would you your yours yourself yourselves s t d ll m re ve don't doesn't didn't isn't aren't wasn't weren't
can't cannot won't wouldn't shouldn't couldn't hasn't haven't hadn't it's that's there's they're we're you're i'm
he's she's let's"""
_GERMAN = """der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren wird
werden wurde wurden hat haben hatte kann können muss soll sich er sie es wir ihr ich du man mit von vom zu zum zur im
in an am auf aus bei für durch über unter nach vor als wie wenn dass daß auch noch nur so dann doch sehr mehr dieser
diese dieses um bis sowie beim"""
_FRENCH = """le la les l un une des du de d et ou mais ne pas est sont était étaient a ont avait être avoir il elle ils
elles on nous vous je tu ce cet cette ces qui que quoi dont où se sa son ses leur leurs au aux en dans par pour sur
sous avec sans comme si plus très aussi y c'est qu'il qu'elle n'est"""
_SPANISH = """el la los las un una unos unas de del y o u pero no es son era eran fue fueron ha han había ser estar
está están se su sus le les lo que qué quien cual como en por para con sin sobre entre más muy también ya al a este
esta estos estas ese esa eso desde hasta si"""
_ITALIAN = """il lo la i gli le un uno una di del della dei delle e o ma non è sono era erano ha hanno essere si suo
sua che chi cui come in nel nella per con su tra fra più anche al alla da dal dalla questo questa se"""
_PORTUGUESE = """o a os as um uma de do da dos das e ou mas não é são era foi foram ser estar tem têm se seu sua que
quem como em no na nos nas por para com sem sobre entre mais também ao à este esta isso"""
_DUTCH = """de het een en of maar niet is zijn was waren wordt worden heeft hebben had kan men zich hij zij ze wij je
met van te tot in op aan bij voor door over onder na als dat die dit deze om ook nog er uit naar dan wel"""
_SWEDISH = """en ett den det de och eller men inte är var varit blir blev har hade kan ska som att på i av till från
med för om vid under över efter också sig sin sitt sina han hon vi du jag man dess denna detta dessa när där då"""

STOP_WORDS = {
    name: words_of(words)
    for name, words in {
        "en": _ENGLISH,
        "de": _GERMAN,
        "fr": _FRENCH,
        "es": _SPANISH,
        "it": _ITALIAN,
        "pt": _PORTUGUESE,
        "nl": _DUTCH,
        "sv": _SWEDISH,
    }.items()
}
_FOREIGN = frozenset().union(*(stop_set for name, stop_set in STOP_WORDS.items() if name != "en"))


def stop_words(tokens: tuple[str, ...]) -> frozenset[str]:
    """The stop words of the language that these words look like; empty if it is none of the languages here."""
    return _stop_words(tokens[:400])


@lru_cache(maxsize=256)  # every lexical detector asks for the same answer's
def _stop_words(sample: tuple[str, ...]) -> frozenset[str]:
    english = sum(map(STOP_WORDS["en"].__contains__, sample))
    if english and english * 1.25 >= sum(map(_FOREIGN.__contains__, sample)):  # then no language explains clearly more
        return STOP_WORDS["en"]
    counts = {name: sum(map(words.__contains__, sample)) for name, words in STOP_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    # English, unless another language explains clearly more words: short texts are mostly English.
    if counts[best] == 0:
        return frozenset()
    return STOP_WORDS["en"] if counts["en"] * 1.25 >= counts[best] else STOP_WORDS[best]
