"""Which tools an answer holds and in which order: that of all tools, however few of them are asked for."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.documents import Confidence, Hit, ToolDocument
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder, StaticEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.ranking import merged, rank, with_places_for
from toolsearch_indexes.request import Request, read_request, word_scores
from toolsearch_indexes.views import SearchSpace

RANKED = [Hit(name, score, "low") for name, score in zip("abcdefg", (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2), strict=True)]


def sure(name: str, score: float) -> Hit:
    return Hit(name, score, "high")


def names(hits: list[Hit]) -> str:
    return "".join(hit.name for hit in hits)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x", "abcdxefg"),  # not among the ranked at all
        ("g", "abcdgef"),  # too far behind
        ("e", "abcdefg"),  # among the first five as it is
        ("yx", "abcyxdefg"),  # the surest first: y, as it is named first here
        ("xg", "abcxgdef"),
        ("vwxyz", "avwxydefg".replace("defg", "bcdefg")),  # the best of the ranked stays; z is left out
    ],
)
def test_what_is_sure_is_the_fifth_at_least(given: str, expected: str) -> None:
    score = 0.9
    one_after_the_other = [sure(name, score - place / 100) for place, name in enumerate(given)]
    hits, moved = with_places_for(RANKED, one_after_the_other)

    assert names(hits) == expected
    assert set(moved) == set(given) - {"e", "z"}


def test_a_moved_tool_keeps_its_score_if_that_is_between_its_neighbours() -> None:
    (moved,) = [hit for hit in with_places_for(RANKED, [sure("x", 0.45)])[0] if hit.name == "x"]
    assert moved == Hit("x", 0.45, "low")  # the answer is a weak one, whatever this tool's words say

    for own, between in ((0.9, 0.5), (0.1, 0.4)):
        (moved,) = [hit for hit in with_places_for(RANKED, [sure("x", own)])[0] if hit.name == "x"]
        assert moved.score == between


def test_what_is_sure_is_the_answer_where_nothing_else_fits() -> None:
    hits, _ = with_places_for([], [sure("y", 0.8), sure("x", 0.8), sure("z", 0.9)])
    assert hits == [Hit("z", 0.9, "high"), Hit("x", 0.8, "medium"), Hit("y", 0.8, "medium")]


def test_the_best_tools_of_all_parts_come_before_the_second_best_of_one() -> None:
    whole = [Hit("a", 0.9, "high"), Hit("b", 0.5, "high"), Hit("z", 0.4)]
    parts = [[Hit("a", 0.8, "high"), Hit("c", 0.7, "high")], [Hit("d", 0.8, "high"), Hit("b", 0.7, "high")]]

    hits, of_parts = merged(whole, parts)

    # d: .64; b: .25 * .8 + .49 * .4; c: .49 * .4; z: .16 * .64
    assert hits == [
        *(Hit("a", 0.8, "high"), Hit("d", 0.8, "high"), Hit("b", 0.7, "high"), Hit("c", 0.7, "high")),
        Hit("z", 0.4, "low"),
    ]
    assert of_parts == ["d", "c"]
    assert merged(whole, parts, 2) == (hits[:2], of_parts)


def test_the_best_of_the_whole_stays_the_first_and_is_no_surer_than_for_its_part() -> None:
    whole = [Hit("a", 0.6, "high"), Hit("b", 0.5, "high")]
    parts = [[Hit("b", 0.9, "high")], [Hit("c", 0.8, "high")]]

    for of_first, score in ((0.8, 0.6), (0.5, 0.5)):
        hits, _ = merged(whole, [*parts, [Hit("a", of_first, "high")]])
        assert hits == [Hit(name, score, "high") for name in "abc"]


def test_the_whole_counts_less_the_more_parts_there_are() -> None:
    whole = [Hit("a", 0.9, "high"), Hit("b", 0.9, "high")]

    for parts, second in ((2, "b"), (3, "c")):
        hits, _ = merged(whole, [[Hit("c", 0.7, "high")], *([] for _ in range(parts - 1))])
        assert hits[1].name == second


def test_an_answer_whose_first_tool_is_not_sure_for_its_part_is_not_sure() -> None:
    hits, _ = merged([Hit("a", 0.5, "high"), Hit("b", 0.3)], [[Hit("a", 0.4)], [Hit("b", 0.41)]])

    assert hits == [Hit("a", 0.4, "low"), Hit("b", 0.4, "low")]


def test_tools_of_parts_alone_are_an_answer() -> None:
    assert merged([], [[Hit("b", 0.5, "high")], []]) == ([Hit("b", 0.5, "high")], ["b"])


scores = st.integers(1, 9).map(lambda tenths: tenths / 10)


@given(
    st.lists(scores, max_size=12).map(lambda found: sorted(found, reverse=True)),
    st.dictionaries(st.sampled_from("abcdefghijklxyz"), scores, max_size=7),
    st.integers(1, 12),
)
def test_fewer_hits_are_the_first_of_more_and_scores_fall(
    found: list[float], own: dict[str, float], limit: int
) -> None:
    ranked = [Hit(name, score) for name, score in zip("abcdefghijkl", found, strict=False)]
    assured = [sure(name, score) for name, score in own.items()]
    every, _ = with_places_for(ranked, assured)
    few, _ = with_places_for(ranked[: max(limit, 5)], assured)

    assert few[:limit] == every[:limit]
    assert len(names(every)) == len(set(names(every)))
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)


# The best of two arms


class Synonyms(HashingEncoder):
    """To it, mail is post."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return super().encode_queries([text.replace("mail", "post") for text in texts])


def read(index: ToolSearchIndex, query: str, strategy: str) -> tuple[SearchSpace, Request]:
    space = SearchSpace.whole(index.state, index.parameters)
    return space, read_request(query, strategy, space, index.lexicon, index.parameters, index.arm)


def best_of_all(space: SearchSpace, request: Request) -> list[str]:
    """What fits, by the raw scores of every single row."""
    scored: list[tuple[float, str]] = []
    for number, segment in enumerate(space.segments):
        raw = request.raw(segment, np.arange(segment.size), word_scores([request], space, number)[0])
        scored += zip((-raw).tolist(), segment.names.names, strict=True)
    return [name for score, name in sorted(scored) if request.scale.follows(-score)]


def test_the_best_sum_is_found_though_it_is_far_from_the_best_of_either_arm() -> None:
    """Ten tools are good in both arms, but behind the hundred best of each. They stand in a segment of their own, where
    they are the best there are.
    """
    groups = [("post post b c", "mail", 10), ("x", "mail mail mail", 150), ("post post b", "", 150), ("y", "", 800)]
    tools = [
        ToolDocument(f"{group}_{i:03}", description, parameter_text=parameters, local_name="z")
        for group, (description, parameters, count) in enumerate(groups)
        for i in range(count)
    ]
    changed = ToolSearchIndex(tools[10:], encoder=Synonyms())
    changed.update(tools[:10])
    space, request = read(changed, "mail", "hybrid")
    expected = best_of_all(space, request)

    assert [segment.size for segment in changed.state.segments] == [1100, 10]
    assert expected[:11] == [*(f"0_{i:03}" for i in range(10)), "2_000"]
    for limit in (1, 5, 12, 400):
        assert [hit.name for hit in rank(space, request, limit, {}).hits] == expected[:limit]
        fresh = ToolSearchIndex(tools, encoder=Synonyms())
        assert changed.search("mail", limit=limit) == fresh.search("mail", limit=limit)


class Directions(HashingEncoder):
    """To it, a request of several parts points in one direction, each part in another, and tools where they say."""

    def _pointing(self, texts: Sequence[str], ways: dict[str, tuple[float, float]]) -> FloatArray:
        matrix = super().encode_documents(texts)
        for row, text in enumerate(texts):
            for word, way in ways.items():
                if word in text:
                    matrix[row] = 0
                    matrix[row, :2] = way
        return matrix

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._pointing(texts, {"whole": (1, 0), "part": (0, 1), "between": (0.6, 0.8)})

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._pointing(texts, {"go": (0, 1), ",": (1, 0)})


@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_the_nearest_on_average_is_found_though_it_is_not_among_the_nearest_to_anything(strategy: str) -> None:
    """One tool is fairly near to both; 150 tools each are as near as can be to the whole, or to the parts."""
    directions = ["whole"] * 150 + ["part"] * 150 + ["between"]
    tools = [ToolDocument(f"{number:03}", way, local_name=way) for number, way in enumerate(directions)]
    space, request = read(ToolSearchIndex(tools, encoder=Directions()), "go west, go north", strategy)
    expected = best_of_all(space, request)

    assert expected[0] == "300"
    for limit in (1, 5, 200):
        assert [hit.name for hit in rank(space, request, limit, {}).hits] == expected[:limit]


# Requests of words that only shape a sentence


class NearTheLamp(HashingEncoder):
    """To it, every request means a lamp."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self.encode_documents(["turn lamp" for _ in texts])


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("the of a in", []),
        ("who am i", ["aws__get_who_am_i"]),
        ("off", ["room__light_off"]),
        ("can you help me with this", []),
        ("who are you", []),
    ],
)
def test_filler_finds_only_tools_whose_names_have_all_of_it(query: str, found: list[str], strategy: Strategy) -> None:
    named = [("aws", "get_who_am_i"), ("room", "light_off"), ("people", "who_list"), ("a", "list_of_the_helpers")]
    documents = [ToolDocument(f"{server}__{name}", "turn lamp", local_name=name) for server, name in named]
    index = ToolSearchIndex(documents, encoder=NearTheLamp(64))

    assert [hit.name for hit in index.search(query, strategy=strategy)] == found
    assert len(index.search("turn lamp", strategy=strategy)) == 4
    for name in (document.name for document in documents):
        assert (index.explain(query, name, strategy=strategy).place == 1) == (name in found)


SIX = (
    ToolDocument("git_log", "Show the commit history of a repository"),
    ToolDocument("git_status", "Show which files have changed"),
    ToolDocument("send_mail", "Send an email message to a person"),
    ToolDocument("create_event", "Add an event to a calendar"),
    ToolDocument("translate_text", "Translate text into another language"),
    ToolDocument("get_weather", "Get the weather forecast of a city"),
)


@pytest.mark.parametrize(
    ("query", "strategy"), [("book a table", "hybrid"), ("pay a bill", "hybrid"), ("sing a song", "semantic")]
)
def test_what_is_near_enough_to_follow_the_best_is_no_answer_by_itself(query: str, strategy: str) -> None:
    index = ToolSearchIndex(SIX, encoder=StaticEncoder())
    space, request = read(index, query, strategy)

    assert best_of_all(space, request)
    assert index.search(query, strategy=strategy) == []


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
def test_what_use_favours_is_moved_up_however_few_tools_are_wanted(strategy: str) -> None:
    twins = [ToolDocument(f"{letter}_mail", "Send an email message") for letter in "abcdefghij"]
    index = ToolSearchIndex([*SIX, *twins], encoder=StaticEncoder())
    favour = {"j_mail": 1.0}

    wanted = [hit.name for hit in index.search("email message", strategy=strategy, limit=20, favour=favour)]
    assert wanted[0] == "j_mail"
    for limit in (1, 2, 3):
        found = index.search("email message", strategy=strategy, limit=limit, favour=favour)
        assert [hit.name for hit in found] == wanted[:limit]


@pytest.mark.parametrize(("of_whole", "of_first"), [("medium", "high"), ("low", "low")])
def test_the_first_tool_for_steps_is_as_sure_as_for_its_step_unless_the_whole_is_weak(
    of_whole: Confidence, of_first: Confidence
) -> None:
    whole = [Hit("a", 0.6, of_whole), Hit("b", 0.6, of_whole)]

    hits, _ = merged(whole, [[sure("a", 0.9)], [sure("b", 0.8)]])

    assert hits == [Hit("a", 0.6, of_first), Hit("b", 0.6, of_first)]
