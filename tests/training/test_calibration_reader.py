"""How what a reader says is joined with the score of a search: on answers made by hand, and on a small set."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.datasets import TEST, TRAIN
from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.scores import READ_FOLLOWING, READ_LEAST, READ_OFFSET, READ_WEIGHT, SURE
from training import calibration_reader
from training.calibration import RECORD
from training.calibration_reader import Read, main, reader_terms
from training.calibration_samples import ALL_TOOLS, REMOVED


class SaysYes:
    """To what has the word that the request ends with."""

    def knows(self, word: str) -> bool:  # noqa: ARG002
        return True

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:
        return np.array([4.0 if request.rsplit(maxsplit=1)[-1] in tool else -4.0 for tool in tools], np.float32)


def test_the_constants_in_use_are_those_that_were_fitted() -> None:
    fitted = json.loads(RECORD.read_text(encoding="utf-8"))["reader"]
    in_use = {"OFFSET": READ_OFFSET, "READ": READ_WEIGHT, "LEAST": READ_LEAST, "FOLLOWING": READ_FOLLOWING}
    assert in_use == fitted


def answers(says: Sequence[float]) -> list[Read]:
    """Two hundred requests with a right tool and a wrong one each, and as many with two wrong ones; the right ones are
    found a little better."""
    chance = np.random.default_rng(0)
    found = chance.normal(size=(400, 2))
    right, wrong = says
    return [
        Read("made up", ALL_TOOLS if answer < 200 else REMOVED, answer, found[answer, place] + is_right, said, is_right)
        for answer in range(400)
        for place, is_right in enumerate((answer < 200, False))
        for said in [(right if is_right else wrong) + chance.normal()]
    ]


def test_a_reader_that_can_tell_counts_and_one_that_cannot_does_not() -> None:
    can_tell, cannot = reader_terms(answers((1, -1))), reader_terms(answers((0, 0)))
    assert can_tell["READ"] > 0.5
    assert abs(cannot["READ"]) < can_tell["READ"] / 3


def test_as_many_requests_that_are_served_keep_high_confidence_and_one_in_a_hundred_is_missed() -> None:
    read = answers((1, -1))
    terms = reader_terms(read)

    def best(log_odds: dict[int, list[float]]) -> np.ndarray:
        return np.array([max(each) for each in log_odds.values()])

    before: dict[int, list[float]] = {}
    after: dict[int, list[float]] = {}
    for each in read:
        if each.kind == ALL_TOOLS:
            before.setdefault(each.answer, []).append(each.found)
            after.setdefault(each.answer, []).append(terms["OFFSET"] + each.found + terms["READ"] * each.said)
    assert (best(after) >= SURE).mean() == pytest.approx((best(before) >= SURE).mean(), abs=0.02)
    assert (best(after) < terms["LEAST"]).mean() == pytest.approx(0.01, abs=0.006)
    assert terms["FOLLOWING"] < terms["LEAST"]


def test_the_command_writes_what_it_fitted_beside_the_other_constants(monkeypatch, tmp_path, capsys) -> None:
    folder = tmp_path / "sets" / "few"
    folder.mkdir(parents=True)
    tools = [
        {"id": name, "name": name, "description": about, "input_schema": {}, "server": ""}
        for name, about in (("mail", "Send a letter"), ("rain", "Forecast of rain"), ("money", "Convert money"))
    ]
    asked = [
        {"id": "1", "query": "write a letter", "relevant": ["mail"]},
        {"id": "2", "query": "will there be rain", "relevant": ["rain"]},
        {"id": "3", "query": "change some money", "relevant": ["money"]},
    ]
    for file, rows in (("tools.jsonl", tools), (TRAIN, asked), (TEST, asked)):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    record = tmp_path / "record.json"
    record.write_text('{"requests": {}}', encoding="utf-8")
    monkeypatch.setattr(calibration_reader, "RECORD", record)
    monkeypatch.setattr(calibration_reader, "open_reader", lambda _: SaysYes())
    monkeypatch.setattr(calibration_reader, "open_encoder", lambda _: open_encoder("built-in"))

    assert main(["--sets", str(tmp_path / "sets")]) == 0
    written = json.loads(record.read_text(encoding="utf-8"))
    assert written.keys() == {"requests", "reader"}
    assert json.loads(capsys.readouterr().out) == written["reader"]
    assert written["reader"]["READ"] > 0


def test_without_sets_or_a_reader_it_says_so(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(calibration_reader, "open_reader", lambda _: None)
    assert main([]) == 2
    monkeypatch.setattr(calibration_reader, "open_reader", lambda _: SaysYes())
    assert main(["--sets", str(tmp_path)]) == 2
    assert "no labelled sets" in capsys.readouterr().err
