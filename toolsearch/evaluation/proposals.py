"""Makes queries from the tools' own words, for a catalog for which there are no real queries yet.

The figures that they give are too good, because somebody who needs a tool does not know its words. They show whether
tools can be told apart, and whether a change of descriptions or of the engine breaks something. How good a search
really is, only queries of people or models show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from itertools import dropwhile, zip_longest
from random import Random
from typing import NamedTuple

from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadSettingError
from toolsearch.evaluation.queries import LabelledQuery
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import MAX_NAME_LENGTH
from toolsearch_indexes.analysis import fold, name_words, stem, terms, words

_FEWEST_WORDS = 2  # stop words aside; one word alone is a tool's whole name, or fits many
_MOST_SENTENCE_WORDS = 12
_MOST_PARAMETERS = 3
_SHORTEST_MISTYPED = 5  # letters; in shorter words a typo makes another word


def propose_queries(definitions: Iterable[ToolDefinition], count: int, *, seed: int = 0) -> list[LabelledQuery]:
    """Return at most *count* queries, each marked as proposed and made from one of *definitions*.

    A tool gives up to five queries: verb and object of its name, the same with a typo, the same in the plural, the
    first sentence of its description without the words of its name, and its object with its parameters. A query that
    two tools would give is left out. Each tool gives one query before any gives a second one. The same arguments give
    the same queries. Another tool removes only queries that it would give as well. Raises BadSettingError if
    *count* < 1.
    """
    if count < 1:
        raise BadSettingError(f"the number of queries to propose must be at least 1, not {count}")
    made = {definition.name: _proposals(definition, seed) for definition in definitions}
    owners = Counter(words for proposals in made.values() for words in {proposal.words for proposal in proposals})
    in_turn = sorted(made, key=lambda name: (_random(seed, name).random(), name))
    unshared = ([(name, each.text) for each in made[name] if owners[each.words] == 1] for name in in_turn)
    proposed = [pair for turn in zip_longest(*unshared) for pair in turn if pair is not None]
    return [LabelledQuery(text, frozenset({name}), is_proposed=True) for name, text in proposed[:count]]


class _Proposal(NamedTuple):
    """A query and its sorted words without the typo. A search cannot tell two queries with the same words apart."""

    text: str
    words: tuple[str, ...]


def _random(seed: int, name: str) -> Random:
    return Random(f"{seed} {name}")  # noqa: S311  no secret; a text as seed gives the same in every process


def _proposals(definition: ToolDefinition, seed: int) -> list[_Proposal]:
    """What *definition* gives, without repetition, in an order of its own."""
    random = _random(seed, definition.name)
    made = {text: _Proposal(text, tuple(sorted(terms(meant)))) for text, meant in _forms(definition, random)}
    usable = [proposal for proposal in made.values() if _is_usable(proposal.text)]
    random.shuffle(usable)
    return usable


def _is_usable(text: str) -> bool:
    """Whether it says enough; and what cannot be printed may not be writable to a file either."""
    return len(terms(text)) >= _FEWEST_WORDS and text.isprintable()


def _forms(definition: ToolDefinition, random: Random) -> Generator[tuple[str, str]]:
    """Queries, each with what it would be without a mistake."""
    own = _own_words(definition)
    verb_and_object = " ".join(dict.fromkeys((own[0], own[-1]))) if own else ""
    yield verb_and_object, verb_and_object
    yield _with_a_typo(verb_and_object, random), verb_and_object
    for text in (
        _plural(verb_and_object),
        _sentence_without(own, definition.description),
        _by_parameters(own, definition.input_schema),
    ):
        yield text, text


def _own_words(definition: ToolDefinition) -> list[str]:
    """The words of the name, without the server's in front. None if the name was cut: it ends in a hash."""
    if len(definition.name) >= MAX_NAME_LENGTH:
        return []
    of_server = set(name_words(definition.server).split())
    return list(dropwhile(of_server.__contains__, name_words(definition.local_name).split()))


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


def _sentence_without(own: Iterable[str], description: str) -> str:
    """Twelve words at most of the first sentence of *description*: no stop words, and no *own* in any inflexion."""
    known = {stem(fold(word)) for word in own}
    sentence = " ".join(description.split()).partition(". ")[0]
    telling = [word for word in words(sentence) if (found := terms(word)) and not known.intersection(found)]
    return " ".join(list(dict.fromkeys(telling))[:_MOST_SENTENCE_WORDS])


def _by_parameters(own: Sequence[str], schema: JsonObject) -> str:
    """As in ``time by source timezone and target timezone``."""
    properties = as_object(schema.get("properties"))
    if not own or not properties:
        return ""
    names = [name_words(name) for name in properties]
    return f"{own[-1]} by {' and '.join(names[:_MOST_PARAMETERS])}"
