"""The texts that the scan learns from, and those by which it is measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scanning import HANDS, TEXTS
from toolsearch.scanning.steering import WHAT

ROOT = Path(__file__).parents[2]
LEARNT = sorted((ROOT / "indexes" / "training" / "data" / "scan_texts").glob("*.jsonl"))
REPORTED = [TEXTS / f"{hand}.jsonl" for hand in HANDS]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", [*LEARNT, *REPORTED], ids=lambda path: path.stem)
def test_half_of_a_hands_texts_attack_by_a_technique_that_has_a_name(path: Path) -> None:
    read = lines(path)
    techniques = {"poisoned": set(WHAT), "harmless": {"dangerous", "plain"}}

    assert all(each["technique"] in techniques[each["label"]] for each in read)
    assert sum(each["label"] == "poisoned" for each in read) / len(read) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("path", LEARNT, ids=lambda path: path.stem)
def test_what_attacks_stands_in_its_text(path: Path) -> None:
    assert all(each.get("span", "") in each["text"] for each in lines(path))
    assert not any(each.get("span") for each in lines(path) if each["label"] == "harmless")


def test_no_text_that_is_learnt_is_measured() -> None:
    learnt, reported = ({each["text"] for path in paths for each in lines(path)} for paths in (LEARNT, REPORTED))
    assert not learnt & reported
