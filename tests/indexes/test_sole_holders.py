"""A word that one tool alone holds: what it is worth in a fusion, by hand."""

import math
from collections.abc import Sequence

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import KeywordParameters, lucene_idf
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.request import SoleHolder, read_request, sole_holders
from toolsearch_indexes.views import SearchSpace, SelectionView

EVENT = ToolDocument(
    "calendar_add_event",
    "Add an event to a calendar",
    parameter_names=("title", "start", "end", "location", "attendees", "email", "rsvp_status"),
    parameter_text="What the event is called\nWhen it begins\nWhen it ends\nWho is asked to come",
)
NEAR = ToolDocument("pottery", "Fire clay in a kiln")
OTHERS = [ToolDocument(f"tool{number:02}", "Paint a landscape") for number in range(62)]


class NearPottery(HashingEncoder):
    """To it, an answer to an invitation means pottery, as a vector made of pieces of words may by chance."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self.encode_documents(["pottery clay kiln" if "rsvp" in text else text for text in texts])


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    return ToolSearchIndex([EVENT, NEAR, *OTHERS], encoder=NearPottery(64))


def holders(index: ToolSearchIndex, query: str, within: Sequence[str] | None = None) -> tuple[SoleHolder, ...]:
    space = SearchSpace.whole(index.state, index.parameters)
    if within is not None:
        view = SelectionView.of(index.state, Selection.of(within))
        space = SearchSpace.seen(index.state, view, index.lexicon, index.parameters, None)
    request = read_request(query, "keyword", space, index.lexicon, index.parameters, index.arm)
    assert request.words is not None
    return sole_holders(request.words, space, index.parameters)


def test_a_tool_that_alone_holds_all_words_is_given_what_chance_gives_the_nearest_of_all(
    index: ToolSearchIndex,
) -> None:
    (found,) = holders(index, "rsvp status")
    assert index.state.segments[0].names.names[found.row] == "calendar_add_event"
    assert found.worth == pytest.approx(math.sqrt(2 * math.log(64)))  # 2.88


def test_the_worth_falls_with_what_the_tool_lacks_and_is_none_at_half(index: ToolSearchIndex) -> None:
    """A word that 62 of 64 tools hold tells next to nothing, and one that none holds the most of all."""
    rare, common, unknown = lucene_idf(64, 1), lucene_idf(64, 62), lucene_idf(64, 0)

    (found,) = holders(index, "rsvp landscape")
    share = rare / (rare + common)
    assert found.worth == pytest.approx(math.sqrt(2 * math.log(64)) * (2 * share - 1))

    assert rare < unknown
    assert holders(index, "rsvp zebra") == ()
    assert holders(index, "rsvp kiln") == ()  # each of the two tools has half of it


def test_a_guess_is_not_a_word_that_was_said(index: ToolSearchIndex) -> None:
    assert holders(index, "atendees") == ()
    assert len(holders(index, "attendees")) == 1


def test_only_tools_in_reach_are_counted(index: ToolSearchIndex) -> None:
    """Within these two, "paint" is a word of one tool alone; in the catalog it is of 62."""
    assert holders(index, "paint") == ()
    (found,) = holders(index, "paint", ["tool00", "pottery"])
    assert found.worth == pytest.approx(math.sqrt(2 * math.log(2)))
    assert holders(index, "rsvp", ["tool00", "pottery"]) == ()


def test_a_rare_word_deep_in_a_schema_outweighs_what_is_near_by_chance(index: ToolSearchIndex) -> None:
    explained = index.explain("rsvp status", "calendar_add_event")
    assert [hit.name for hit in index.search("rsvp status", limit=2)] == ["calendar_add_event", "pottery"]
    words = sum(match.score for match in explained.words)
    assert explained.word_score == pytest.approx(words + explained.weight * math.sqrt(2 * math.log(64)))
    assert explained.raw == pytest.approx(explained.word_score + explained.weight * explained.deviations, rel=1e-5)


def test_a_catalog_of_one_tool_or_none_has_no_chance_to_speak_of() -> None:
    assert holders(ToolSearchIndex([EVENT], parameters=KeywordParameters()), "rsvp")[0].worth == 0
    assert holders(ToolSearchIndex(), "rsvp") == ()
