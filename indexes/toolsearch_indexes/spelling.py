"""British spelling into American, so that a word is one term in whichever country it was written.

By ending where that tells enough, else by root: *colour*, but not *contour*. Words that mean something else in the
other spelling are left alone, as *cheque*, *tyre*, *storey* and *disc* are, and so are those that have but one: an
*advertize* would no longer be akin to its *advertisement*.
"""

from __future__ import annotations

import re

# What stands before -ise in words that have no z anywhere.
_NEVER_IZE = (
    "adv advert appr chast chem circumc compr comprom conc dem desp dev enterpr exc exerc expert franch improv inc "
    "merchand moonr mort parad pract prec prem prom repr rev sunr superv surm surpr telev treat upr w"
)

_ISE = re.compile(
    "(?<=[a-z][a-z][b-df-hj-np-tv-z])"  # no *rise* or *noise*
    + "".join(f"(?<!{root})" for root in _NEVER_IZE.split())
    + "is(?=(?:e[drs]?|ers|ing(?:s|ly)?|ab(?:le|ly)|ations?|ational(?:ly)?)$)"
)

_RE = "calib|cent|fib|lit|lust|manoeuv|meag|met|sab|scept|sepulch|somb|spect|theat"

# Letters without which a rule need not be looked at, which is faster; what it replaces; and by what.
_RULES = (
    ("is", _ISE, "iz"),
    ("lys", re.compile("(?<=[a-z][aeo])lys(?=(?:e[drs]?|ers|ing)$)"), "lyz"),
    (
        "our",
        re.compile(
            "(arb|ard|arm|behavi|cand|clam|col|demean|endeav|enam|fav|ferv|flav|glam|harb|hon|hum|lab|neighb|od|parl"
            "|ranc|rig|rum|savi?|splend|succ|tum|val|vap|vig)our"
        ),
        r"\1or",
    ),
    ("re", re.compile(f"({_RE})r(?:e(?=s?$)|(?=ed$))"), r"\1er"),
    ("ring", re.compile(f"({_RE})r(?=ing$)"), r"\1er"),
    ("logu", re.compile("(ana|cata|dia|homo|mono)(?:logue(?=s?$)|logu(?=(?:ed|ers?|ing)$))"), r"\1log"),
    ("enc", re.compile("(def|lic|off|pret)enc(?=(?:e[ds]?|ing)$)"), r"\1ens"),
    # Of words as *travelled* the stemmer takes an l away, but not of these.
    ("ll", re.compile("^(counse|dia|due|fue|grue|initia|tria|via|woo)ll(?=(?:ed|ens?|ing|ors?)$)"), r"\1l"),
    ("programme", re.compile("programme(?=s?$)"), "program"),
)

_BEGINNINGS = {
    "acknowledgement": "acknowledgment",
    "aeroplane": "airplane",
    "anaesth": "anesth",
    "artefact": "artifact",
    "cypher": "cipher",
    "diarrhoea": "diarrhea",
    "enquir": "inquir",
    "focuss": "focus",
    "foetus": "fetus",
    "gynaec": "gynec",
    "haema": "hema",
    "haemo": "hemo",
    "jewellery": "jewelry",
    "judgement": "judgment",
    "moustache": "mustache",
    "oesoph": "esoph",
    "oestr": "estr",
    "plough": "plow",
    "practis": "practic",
    "pyjama": "pajama",
    "sceptic": "skeptic",
    "yoghurt": "yogurt",
}
_BEGINNING = re.compile(f"^(?:{'|'.join(_BEGINNINGS)})")

_PARTS = {"aemia": "emia", "aluminium": "aluminum", "grey": "gray", "manoeuv": "maneuv", "paed": "ped", "sulph": "sulf"}
_PART = re.compile("|".join(_PARTS))


def american(word: str) -> str:
    """*word* is one of small ASCII letters, inflected or not; most come back as they are."""
    for letters, british, replacement in _RULES:
        if letters in word:
            word = british.sub(replacement, word)
    if _PART.search(word):
        word = _PART.sub(lambda found: _PARTS[found.group()], word)
    found = _BEGINNING.match(word)
    return _BEGINNINGS[found.group()] + word[found.end() :] if found else word
