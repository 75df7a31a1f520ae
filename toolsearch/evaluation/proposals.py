"""Queries made from the tools' own words, for a catalog that nobody has asked anything yet.

They flatter: who needs a tool does not know its words. They show whether tools can be told apart at all, and whether a
change of descriptions or of the engine breaks something; how good a search is, only queries of people or models show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from itertools import zip_longest
from random import Random

from toolsearch.catalog.sources.json_values import as_object
from toolsearch.errors import BadSettingError
from toolsearch.evaluation.queries import LabelledQuery
from toolsearch.tools.definition import JsonObject, ToolDefinition
from toolsearch_indexes.analysis import fold, name_words, stem, terms
from toolsearch_indexes.query_forms import Words, read_form

_FEWEST_WORDS = 2  # stop words aside; one word alone is a tool's whole name, or fits many
_MOST_SENTENCE_WORDS = 12
_MOST_PARAMETERS = 3
_SHORTEST_MISTYPED = 5  # letters; in shorter words a typo makes another word


def propose_queries(definitions: Iterable[ToolDefinition], count: int, *, seed: int = 0) -> list[LabelledQuery]:
    """Return at most *count* queries, each marked as proposed and made from one of *definitions*.

    The forms: verb and object of the name, the same with a typo, and in the plural; the first sentence of the
    description without the words of the name; the object and its parameters. A query whose words two tools would give
    is left out. Every tool has its turn before one has a second. The same arguments give the same queries, and a tool
    more takes away only those that it would give, too. Raises BadSettingError if *count* < 1.
    """
    if count < 1:
        raise BadSettingError(f"the number of queries to propose must be at least 1, not {count}")
    texts = {definition.name: _texts(definition, seed) for definition in definitions}
    owners = Counter(key for own in texts.values() for key in {_key(text) for text in own})
    in_turn = sorted(texts, key=lambda name: (_random(seed, name).random(), name))
    rounds = zip_longest(*([(name, text) for text in texts[name] if owners[_key(text)] == 1] for name in in_turn))
    proposed = [pair for turn in rounds for pair in turn if pair is not None]
    return [LabelledQuery(text, frozenset({name}), is_proposed=True) for name, text in proposed[:count]]


def _random(seed: int, name: str) -> Random:
    return Random(f"{seed} {name}")  # noqa: S311  nothing to guard; a text as seed is the same in every process


def _texts(definition: ToolDefinition, seed: int) -> list[str]:
    """The queries that *definition* gives, without repetition, in an order of its own."""
    random = _random(seed, definition.name)
    made = [text for text in dict.fromkeys(_forms(definition, random)) if _is_usable(text)]
    random.shuffle(made)
    return made


def _is_usable(text: str) -> bool:
    """Whether it is words, and enough of them; what cannot be printed may not be writable to a file either."""
    return len(terms(text)) >= _FEWEST_WORDS and text.isprintable() and isinstance(read_form(text), Words)


def _key(text: str) -> tuple[str, ...]:
    """What two queries share if a search by words cannot tell them apart."""
    return tuple(sorted(terms(text)))


def _forms(definition: ToolDefinition, random: Random) -> Generator[str]:
    words = name_words(definition.local_name).split()
    verb_and_object = " ".join(dict.fromkeys((words[0], words[-1]))) if words else ""
    yield verb_and_object
    yield _with_a_typo(verb_and_object, random)
    yield _plural(verb_and_object)
    yield _sentence_without(words, definition.description)
    yield _by_parameters(words, definition.input_schema)


def _with_a_typo(text: str, random: Random) -> str:
    """Swap two different neighbours inside the longest word, or return "" if no word is long enough."""
    word = max(text.split(), key=len, default="")
    places = [place for place in range(1, len(word) - 2) if word[place] != word[place + 1]]
    if len(word) < _SHORTEST_MISTYPED or not places:
        return ""
    place = random.choice(places)
    mistyped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return text.replace(word, mistyped, 1)


def _plural(text: str) -> str:
    """Put the last word into the plural, or return "" if it seems to be in it, or is no English word."""
    if not text.isascii() or not text[-1:].isalpha() or text.endswith("s"):
        return ""
    if text.endswith("y") and text[-2:-1] not in "aeiou":
        return f"{text[:-1]}ies"
    return f"{text}es" if text.endswith(("x", "z", "ch", "sh")) else f"{text}s"


def _sentence_without(words: Iterable[str], description: str) -> str:
    """The first sentence of *description*, at most twelve words of it, without *words* in any inflexion."""
    known = {stem(fold(word)) for word in words}
    sentence = " ".join(description.split()).partition(". ")[0].rstrip(".")
    kept = [word for word in sentence.split() if not known.intersection(terms(word))]
    return " ".join(kept[:_MOST_SENTENCE_WORDS])


def _by_parameters(words: list[str], schema: JsonObject) -> str:
    """As in ``time by source timezone and target timezone``."""
    properties = as_object(schema.get("properties"))
    if not words or not properties:
        return ""
    names = [name_words(name) for name in properties]
    return f"{words[-1]} by {' and '.join(names[:_MOST_PARAMETERS])}"
