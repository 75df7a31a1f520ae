"""The recipe of the built-in encoder: what the second stage learns from, and that it learns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.training.small_model import one_thread  # skips without them
from training import static
from training.corpora import TrainingTool, neighbour_tools, written_tools
from training.lessons import Lessons, Texts
from training.pieces import UNKNOWN, cutter
from training.static_training import StaticTraining, train

WRITTEN = Path(static.__file__).parent / "data"
SHORT = StaticTraining(steps=100, batch=32, rate=2e-2, words=0, likeness=0, together=4)


@pytest.fixture(autouse=True)
def single_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def tools() -> list[TrainingTool]:
    return list(written_tools(WRITTEN))[:20]


def start(tools: list[TrainingTool]) -> tuple[np.ndarray, Lessons]:
    """A table of random rows for the words of *tools*, and their requests as lessons."""
    words = {word for tool in tools for text in (tool.name, tool.description, *tool.queries) for word in text.split()}
    rows = {piece: row for row, piece in enumerate([UNKNOWN, *sorted({word.lower() for word in words})])}
    lessons = Lessons(Texts(cutter(rows)))
    lessons.add_tools("written", tools)
    return np.random.default_rng(0).normal(scale=0.1, size=(len(rows), 32)).astype(np.float32), lessons


def test_without_a_teacher_the_loss_falls_and_the_steps_repeat(tools) -> None:
    def losses() -> list[float]:
        table, lessons = start(tools)
        found: list[float] = []
        train(table, lessons, None, (), SHORT, lambda _, loss: found.append(loss))
        return found

    first = losses()
    assert len(first) == SHORT.steps
    assert np.mean(first[-20:]) < 0.5 * np.mean(first[:20])
    assert losses() == first


def test_the_row_of_unknown_words_stays_zero(tools) -> None:
    table, lessons = start(tools)
    trained = train(table, lessons, None, (), SHORT, lambda *_: None)
    assert not trained[0].any()
    assert trained[1:].any(axis=1).all()


def test_neighbours_follow_each_other_in_the_order_of_their_file(tmp_path) -> None:
    public = [TrainingTool("api", name, f"Does {name}.") for name in ("read", "write", "unasked")]
    asked = [
        {"api": "api", "name": "write", "requests": ["put it there"]},
        {"api": "gone", "name": "read", "requests": ["never"]},
        {"api": "api", "name": "read", "requests": ["show it", "what is in it?"]},
    ]
    file = tmp_path / "neighbours.jsonl"
    file.write_text(json.dumps({"tools": asked, "unserved": []}) + "\n", encoding="utf-8")

    assert [(tool.name, tool.description, tool.queries) for tool in neighbour_tools(file, public)] == [
        ("write", "Does write.", ("put it there",)),
        ("read", "Does read.", ("show it", "what is in it?")),
    ]


def test_values_in_requests_are_named_by_their_kind() -> None:
    (masked,) = static.masked([TrainingTool("api", "write", "Writes.", "", ("put it in ./app/server.py", "save it"))])
    assert masked.queries == ("put it in file", "save it")


def test_the_second_stage_learns_no_requests_of_measured_tools(tmp_path) -> None:
    def write(file: str, *servers: str) -> None:
        rows = [{"server": server, "name": "list", "requests": ["show all"]} for server in servers]
        (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    write("mcp.jsonl", "linear", "filesystem")
    for file in ("github", "mcp_more", "python"):
        write(f"{file}.jsonl", file)
    assert [tool.name for tool in static.shipped_tools(tmp_path)] == ["linear list"]


def test_what_a_folder_holds_is_written_and_read_again(tmp_path) -> None:
    rows = np.array([[0, 0], [1, -2], [3, 4]], np.int8)
    made = static.Made(rows, {UNKNOWN: 0, "mail": 1, "post": 2}, ["azcli"])
    digest = made.write(tmp_path)

    assert json.loads((tmp_path / "about.json").read_text())["digest"] == digest
    again = static.Made.read(tmp_path)
    assert again.rows.tolist() == rows.tolist()
    assert (again.pieces, again.left_out) == (made.pieces, made.left_out)
