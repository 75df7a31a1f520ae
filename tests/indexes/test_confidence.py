"""How sure an answer is of each tool: tools that fit nearly as well share the chance to be the one meant."""

import pytest

from toolsearch_indexes.confidence import MEANT, chances_of, compared
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.scores import SURE_SCORE

HOSTS = ("github", "gitlab", "gitea", "bitbucket", "forgejo", "gogs", "codeberg", "sourcehut", "pagure", "launchpad")
CLOSING = [
    ToolDocument(f"{host}__close_issue", "Close an issue of a repository.", server=host, local_name="close_issue")
    for host in HOSTS
]
OTHERS = [
    ToolDocument("send_email", "Send an email message to one or more recipients."),
    ToolDocument("create_branch", "Create a branch of a repository."),
    ToolDocument("get_forecast", "Weather forecast of a city for the next days."),
    ToolDocument("play_song", "Play a song on a speaker."),
]
STRATEGIES = ("keyword", "semantic", "hybrid")


def index_of(*tools: ToolDocument) -> ToolSearchIndex:
    return ToolSearchIndex(tools, encoder=open_encoder(BUILT_IN))


@pytest.mark.parametrize(
    ("scores", "chances"),
    [
        ([], []),
        ([0.8], [0.8]),
        ([0.8, 0.8], [0.4, 0.4]),
        ([0.8, 2 / 3], [0.8 * 16 / 20, 2 / 3 * 4 / 20]),  # odds of 4 and 2
        ([0.9] * 10, [0.18] * 10),
        ([1.0, 0.5], [1.0, 0.0]),  # found by its name
    ],
)
def test_a_tool_has_of_its_score_the_share_of_its_squared_odds(scores: list[float], chances: list[float]) -> None:
    assert chances_of(scores) == pytest.approx(chances, abs=1e-6)


def test_confidence_is_medium_where_a_tool_fits_but_its_chance_is_small_and_a_weak_hit_stays_weak() -> None:
    hits = [Hit("a", 0.8, "high"), Hit("b", 0.8, "high"), Hit("c", 0.75, "high"), Hit("d", 0.3, "low")]

    assert [hit.confidence for hit in compared(hits)] == ["medium", "medium", "medium", "low"]
    assert [hit.confidence for hit in compared(hits[1:2])] == ["high"]
    assert compared([Hit("a", 0.9), Hit("b", 0.1)]) == [Hit("a", 0.9, "low"), Hit("b", 0.1, "low")]
    assert MEANT < SURE_SCORE  # or the best tool of an answer that just fits would never have high confidence


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_ten_tools_that_say_the_same_none_has_high_confidence_though_all_fit(strategy: str) -> None:
    hits = index_of(*CLOSING, *OTHERS).search("close an issue", limit=10, strategy=strategy)  # type: ignore[arg-type]

    assert {hit.name for hit in hits} == {tool.name for tool in CLOSING}
    assert {hit.confidence for hit in hits} == {"medium"}
    assert index_of(CLOSING[0], *OTHERS).search("close an issue")[0].confidence == "high"


def test_whose_server_is_named_is_the_one_meant() -> None:
    best, second, *_ = index_of(*CLOSING, *OTHERS).search("close an issue on gitlab")

    assert (best.name, best.confidence) == ("gitlab__close_issue", "high")
    assert second.confidence == "medium"


def test_confidence_is_the_same_however_few_tools_are_asked_for() -> None:
    index = index_of(*CLOSING, *OTHERS)
    for query in ("close an issue", "close an issue on gitlab", "create a branch and send an email", "close_issue"):
        longest = index.search(query, limit=14)
        assert all(index.search(query, limit=limit) == longest[:limit] for limit in range(1, 14)), query


def test_tools_for_other_steps_of_a_request_are_no_rivals() -> None:
    hits = index_of(*OTHERS).search("play a song, then create a branch and send an email to Ann, then get the weather")

    assert [hit.confidence for hit in hits[:4]] == ["high"] * 4
    assert hits[0].score - hits[3].score < 0.1  # as rivals, each would have a quarter of the chance


def test_a_name_that_many_tools_have_means_none_of_them_surely() -> None:
    assert {hit.confidence for hit in index_of(*CLOSING).search("close_issue")} == {"medium"}
    assert index_of(*CLOSING).search("gitlab__close_issue")[0] == Hit("gitlab__close_issue", 1.0, "high")
    assert {hit.confidence for hit in index_of(*CLOSING).search("select:close_issue", limit=10)} == {"high"}
