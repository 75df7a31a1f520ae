"""From which chance on confidence is high: fitted on answers made by hand, and on a small catalog."""

from __future__ import annotations

import json

import pytest

from benchmarks.datasets import TEST, TRAIN
from benchmarks.enrichment import Asked
from toolsearch_indexes.confidence import MEANT, SHARPNESS
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from training import calibration_chances
from training.calibration import RECORD
from training.calibration_chances import Best, bests, chance_terms, main

MAIL = [ToolDocument(f"{server}__send", "Send a message to a person", server=server) for server in "qvwxz"]
CLOCK = ToolDocument("clock", "Convert time between timezones")


def test_the_threshold_is_the_chance_with_which_half_of_the_best_tools_are_right() -> None:
    """Alone, a tool has its score as its chance."""
    even = [Best("one", [score], is_right) for score in (0.3, 0.5, 0.7) for is_right in (True, False)]
    of = [*even, Best("one", [0.3], is_right=False), Best("one", [0.7], is_right=True)]

    assert chance_terms(of, SHARPNESS)["MEANT"] == pytest.approx(0.5)


def test_each_catalog_has_the_same_weight() -> None:
    of = [Best(name, [0.6], is_right) for name, is_right in (("one", True), ("two", False))]
    spread = [Best(name, [0.4], is_right) for name, is_right in (("one", True), ("two", False), ("two", False))]

    terms = chance_terms([*of, *spread], SHARPNESS)

    assert terms == chance_terms([*of, *spread, *of[:1], *spread[:1]], SHARPNESS)


def test_answers_that_are_not_weak_have_the_scores_of_all_that_say_the_same() -> None:
    asked = Asked("six", [*MAIL, CLOCK], [("send a message", frozenset({"z__send"})), ("xqzt", frozenset({"clock"}))])

    (best,) = bests(asked, open_encoder(BUILT_IN))

    assert (best.catalog, best.is_right) == ("six", False)
    assert len(best.scores) == 5
    assert best.scores[0] - best.scores[4] < 0.01


def test_the_command_writes_what_it_finds_beside_the_other_fits(tmp_path, monkeypatch, capsys) -> None:
    folder, record = tmp_path / "set", tmp_path / "calibration.json"
    folder.mkdir()
    record.write_text('{"requests": {}}')
    tools = [{"id": each.name, "name": each.name, "description": each.description} for each in (*MAIL, CLOCK)]
    (folder / "tools.jsonl").write_text("\n".join(json.dumps({**tool, "input_schema": {}}) for tool in tools))
    asked = [("send a message", "z__send"), ("convert time", "clock")]
    lines = "\n".join(json.dumps({"id": text, "query": text, "relevant": [name]}) for text, name in asked)
    for part in (TRAIN, TEST):
        (folder / part).write_text(lines)
    monkeypatch.setattr(calibration_chances, "RECORD", record)
    monkeypatch.setattr(calibration_chances, "WITH_REQUESTS", ())

    assert main(["--sets", str(tmp_path)]) == 0
    found = json.loads(record.read_text())
    assert found["requests"] == {}
    assert str(SHARPNESS) in found["chances"]
    assert "set             2   50.0%           100.0%             0.0%" in capsys.readouterr().out
    assert main(["--sets", str(folder)]) == 2


def test_the_threshold_in_use_is_near_the_last_fit() -> None:
    fitted = json.loads(RECORD.read_text(encoding="utf-8"))["chances"]

    assert fitted[str(SHARPNESS)]["MEANT"] == pytest.approx(MEANT, abs=0.05)
