"""How the constants of the scores are fitted: on samples worked by hand, and on a small catalog."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.abstention import Unanswerable
from benchmarks.enrichment import Asked
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from training import calibration
from training.calibration import RECORD, labelled_samples, main, request_outcomes
from training.calibration_requests import IN_USE, Pair, pairs, request_terms
from training.calibration_samples import ALL_TOOLS, FEW_TOOLS, NOTHING, REMOVED, STRATEGIES, Sample, cases
from training.calibration_scales import scale_terms, thresholds
from training.logistic import fit_logistic

TOOLS = [
    ToolDocument("clock", "Convert time between timezones", requests=("what is 3pm Berlin in Tokyo", "hour abroad")),
    ToolDocument("mail", "Send a message to a person", requests=("write to Ann that I am late",)),
    ToolDocument("weather", "Forecast for a city", requests=("will it rain in Berlin tomorrow",)),
    ToolDocument("money", "Convert an amount to another currency", requests=("what are 20 euros in yen",)),
]
ASKED = Asked(
    "four",
    TOOLS,
    [("hour in Tokyo", frozenset({"clock"})), ("send Ann a message", frozenset({"mail"}))],
    ["rent a car in Berlin", "water the flowers"],
)


def sample(raw: float, *, is_served: bool = False, kind: str = NOTHING) -> Sample:
    of = dict.fromkeys(STRATEGIES, raw)
    return Sample("made up", kind, is_served, of, 30, ideal=20.0, familiarity=0.0, sense=1.0)


# The regression


def test_without_features_the_log_odds_are_those_of_the_counts():
    outcomes = np.array([True, True, True, False])

    assert fit_logistic(np.ones((4, 1)), outcomes, np.ones(4))[0] == pytest.approx(math.log(3), abs=1e-4)
    assert fit_logistic(np.ones((4, 1)), outcomes, np.array([1, 1, 1, 3.0]))[0] == pytest.approx(0, abs=1e-4)


def test_a_feature_gets_the_log_odds_ratio_of_its_two_values():
    features = np.array([[1.0, x] for x in (0, 0, 0, 0, 1, 1, 1, 1)])
    outcomes = np.array([True, False, False, False, True, True, True, False])

    fitted = fit_logistic(features, outcomes, np.ones(8))
    assert fitted == pytest.approx([-math.log(3), 2 * math.log(3)], abs=1e-3)


def test_outcomes_that_a_feature_separates_have_an_end():
    fitted = fit_logistic(np.array([[1.0, 0], [1, 1]]), np.array([False, True]), np.ones(2))

    assert np.isfinite(fitted).all()
    assert fitted[1] > 0


def test_one_outcome_alone_is_refused():
    with pytest.raises(ValueError, match="both outcomes"):
        fit_logistic(np.ones((2, 1)), np.array([True, True]), np.ones(2))


# What is asked


def test_each_query_is_asked_with_and_without_the_tools_that_serve_it():
    asked = list(cases(ASKED, seed=0))

    assert asked == list(cases(ASKED, seed=0))
    assert [case.kind for case in asked] == [*[ALL_TOOLS, FEW_TOOLS, REMOVED, FEW_TOOLS] * 2, NOTHING, NOTHING]
    for case in asked[:4]:
        assert case.is_served == ("clock" in (case.within or ["clock"]))


# What requests add


def test_the_term_is_what_requests_still_add_beyond_the_term_in_use():
    """Raw 1 is worth 0.99 in the log odds of the semantic scale."""
    more, same = Pair(sample(2.0), sample(2.0 + 0.3 / 0.99)), Pair(sample(2.0), sample(2.0))

    assert request_terms([more])["semantic"] == pytest.approx(IN_USE["semantic"] + 0.3, abs=0.01)
    assert request_terms([same, same]) == IN_USE


def test_the_term_does_not_hang_on_requests_that_a_tool_serves():
    unserved = Pair(sample(2.0), sample(3.0))
    served = Pair(sample(2.0, is_served=True), sample(9.0, is_served=True))

    assert request_terms([unserved, served]) == request_terms([unserved])


def test_the_terms_of_a_small_catalog_are_the_same_each_time_and_go_by_the_tools_with_requests():
    encoder = HashingEncoder(64)
    bare = ToolDocument("rain", "Forecast of rain for a city")
    terms = request_terms(pairs(ASKED, encoder, seed=0))

    assert terms == request_terms(pairs(replace(ASKED, documents=[*TOOLS, bare]), encoder, seed=0))


def test_the_outcomes_tell_what_requests_change():
    asked = [Pair(sample(1.0), sample(6.0)), Pair(*[sample(9.0, kind=ALL_TOOLS, is_served=True)] * 2)]
    found = [each for each in request_outcomes(asked) if each.strategy == "semantic"]

    assert [each.answered for each in found] == [0.0, 1.0]
    assert [each.refused for each in found] == [0.0, 0.0]


# The scales


def test_a_better_match_raises_the_fitted_log_odds():
    raws = [(1.0, False), (2.0, False), (3.0, True), (4.0, False), (5.0, True), (6.0, True)]
    of = [sample(raw, is_served=is_served) for raw, is_served in raws]

    assert scale_terms(of, "semantic")["raw"] > 0
    assert scale_terms(of, "semantic") == scale_terms(of, "semantic")


def test_thresholds_follow_their_rules():
    """Of 101 evenly spread log odds, 1.5 % lie below the second and a half, and 6 % above the 95th."""
    raws = [raw / 10 for raw in range(1, 102)]
    of = [sample(raw, is_served=is_served) for raw in raws for is_served in (True, False)]
    odds = [each.log_odds("semantic") for each in of[::2]]
    found = thresholds(of, "semantic")

    assert found["LEAST"] == pytest.approx((odds[1] + odds[2]) / 2, abs=0.01)
    assert found["SURE"] == pytest.approx(odds[94], abs=0.01)
    assert found["FOLLOWING"] < found["LEAST"]


def test_labelled_sets_are_read_by_their_train_queries(tmp_path, capsys):
    folder = tmp_path / "set"
    folder.mkdir()
    tools = [{"id": each.name, "name": each.name, "description": each.description} for each in TOOLS]
    (folder / "tools.jsonl").write_text("\n".join(json.dumps({**tool, "input_schema": {}}) for tool in tools))
    for part in ("train", "test"):
        query = {"query": f"send a message {part}", "relevant": ["mail"]}
        (folder / f"queries.{part}.jsonl").write_text(json.dumps(query))
    (found,) = labelled_samples(tmp_path, [Unanswerable("set", "feed the cat", "no_tool")], None)

    assert [each.kind for each in found] == [ALL_TOOLS, FEW_TOOLS, FEW_TOOLS, NOTHING]
    assert [each.is_served for each in found] == [True, True, False, False]
    assert "set: asked with the built-in encoder, which has learnt from it" in capsys.readouterr().err


# The command


def test_the_command_writes_what_it_finds_and_keeps_the_other_fit(tmp_path, monkeypatch, capsys):
    record = tmp_path / "calibration.json"
    record.write_text('{"scales": {"keyword": {"raw": 0.2}}}')
    monkeypatch.setattr(calibration, "RECORD", record)
    monkeypatch.setattr(calibration, "WITH_REQUESTS", ("four",))
    monkeypatch.setattr(calibration, "asked_by_agents", lambda name: replace(ASKED, name=name))
    monkeypatch.setattr(calibration, "open_encoder", lambda _: HashingEncoder(64))

    assert main(["--only", "requests"]) == 0
    found = json.loads(record.read_text())
    assert found["scales"] == {"keyword": {"raw": 0.2}}
    assert set(found["requests"]) == set(IN_USE)
    assert "no requests" in capsys.readouterr().out
    assert main(["--only", "scales", "--sets", str(tmp_path)]) == 2


def test_the_constants_are_those_of_the_last_fit():
    """Whoever changes one runs the fit, and whoever has run it changes the constants."""
    found = json.loads(RECORD.read_text(encoding="utf-8"))["requests"]

    assert found == IN_USE
