"""Trains the built-in encoder and writes its folder.

python -m training.static [--sets ../shared/eval] [--out FOLDER] [--leave SET,SET] [--start FOLDER] [--cache FOLDER]

The first stage learns from everything, the second mostly from requests of users. ``--start`` begins with the second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import require
from toolsearch_indexes.encoders.static import BUILT_IN_FOLDER, StaticEncoder
from toolsearch_indexes.values import without_values
from training.corpora import (
    TrainingTool,
    labelled_tools,
    neighbour_tools,
    written_tools,
)
from training.lessons import Lessons, Texts, whole_text
from training.pieces import cutter, english_pieces, foreign_pieces, word_counts
from training.sentence_model import minilm_folder, read_tokenizer
from training.sources import WORDNET, fetched, public_tools
from training.static_training import StaticTraining, train
from training.table import as_bytes, first_table
from training.teacher import Teacher
from training.transformer_lessons import requests_to_learn
from training.wordnet import Synset, used_synsets

_WRITTEN = Path(__file__).parent / "data"
_MOST_QUERIES = 6_000  # the most queries of one set
_EXAMPLES = 24_000  # tools for which the teacher shows similar ones
_COMMON_WORD = 25  # tools that must say a word to make it common
_REPORT_EVERY = 50  # steps between two reports
# Files of requests that ship. The length of this training was chosen on the first, and `benchmarks.unseen` asks for
# tools of the second.
_NOT_LEARNT = frozenset({"mcp_more", "python"})
_SECOND = StaticTraining(steps=600, words=0, likeness=0, together=32)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    require("torch", what="training an encoder", extra="semantic").set_num_threads(options.threads)
    public = public_tools(options.cache, options.seed)
    written = list(written_tools(_WRITTEN))
    print(f"{len(public)} public tools, {len(written)} written")
    leave = [name for name in options.leave.split(",") if name]
    first = Made.read(options.start) if options.start else _first_stage(options, leave, public, written, started)
    labelled = chain.from_iterable(_labelled_tools(options.sets, first.left_out, options.seed).values())
    digest = _second_stage(first, public, written, labelled, options.seed, started).write(options.out)
    print(f"{options.out}: {digest}, after {time.perf_counter() - started:.0f} s")
    return 0


class Made(NamedTuple):
    """An encoder as it is written: its rows, the row of each piece, and the labelled sets that it has not learnt."""

    rows: NDArray[np.int8]
    pieces: Mapping[str, int]
    left_out: Sequence[str]

    @classmethod
    def read(cls, folder: Path) -> Made:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        pieces = json.loads((folder / "pieces.json").read_text(encoding="utf-8"))
        return cls(np.load(folder / "table.npy"), pieces, about["left_out"])

    def write(self, folder: Path) -> str:
        """Return the digest."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.pieces, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(self.rows.tobytes() + text.encode()).hexdigest()[:16]
        np.save(folder / "table.npy", self.rows)
        (folder / "pieces.json").write_text(text, encoding="utf-8")
        about = {"name": "toolsearch", "digest": digest, "left_out": list(self.left_out)}
        (folder / "about.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
        StaticEncoder(folder)
        return digest


def _first_stage(
    options: argparse.Namespace,
    leave: Sequence[str],
    public: Sequence[TrainingTool],
    written: Sequence[TrainingTool],
    started: float,
) -> Made:
    how = StaticTraining(steps=options.steps, seed=options.seed)
    labelled = _labelled_tools(options.sets, leave, options.seed)
    print(f"{sum(map(len, labelled.values()))} tools of labelled sets")

    counts = word_counts(f"{tool.name} {tool.description} {tool.parameters}" for tool in public)
    english = english_pieces(read_tokenizer(minilm_folder() / "tokenizer.json", max_tokens=1).get_vocab(), counts)
    rows = {piece: row for row, piece in enumerate(english)}
    common = {word for word, count in counts.items() if count >= _COMMON_WORD}
    synsets = used_synsets(fetched(WORDNET, options.cache), common)

    lessons = Lessons(Texts(cutter(rows)))
    lessons.add_tools("public", public)
    for name, tools in labelled.items():
        lessons.add_tools(name, tools)
    lessons.add_tools("written", written, with_parts=False)
    pieces, _ = lessons.texts.flat()
    lessons.add_synsets(synsets)

    teacher = Teacher(options.cache)
    alone = teacher.vectors([piece.removeprefix("##") for piece in english[1:]])
    table = first_table(alone, np.bincount(pieces, minlength=len(rows))[1:] + 1.0, options.dimensions)
    trained = train(table, lessons, teacher, _examples(public, synsets, options.seed), how, _report(how, started))
    return Made(as_bytes(trained), rows | foreign_pieces(_WRITTEN / "words.tsv", rows), leave)


def _second_stage(
    first: Made,
    public: Sequence[TrainingTool],
    written: Iterable[TrainingTool],
    labelled: Iterable[TrainingTool],
    seed: int,
    started: float,
) -> Made:
    """Learn requests of users from each other, with their values masked as in a search. All labelled sets together are
    one of four sources here, since real catalogs are not like them; in the first stage they are most of the sources.
    """
    how = replace(_SECOND, seed=seed)
    lessons = Lessons(Texts(cutter(first.pieces)))
    lessons.add_tools("neighbours", masked(neighbour_tools(_WRITTEN / "neighbours.jsonl", public)))
    for name, tools in (
        ("shipped", shipped_tools(_WRITTEN / "requests")),
        ("written", written),
        ("labelled", labelled),
    ):
        lessons.add_tools(name, masked(tools), with_parts=False)
    table = first.rows.astype(np.float32) / np.float32(np.iinfo(np.int8).max)
    trained = train(table, lessons, None, (), how, _report(how, started))
    return first._replace(rows=as_bytes(trained))


def shipped_tools(folder: Path) -> Iterator[TrainingTool]:
    files = requests_to_learn(folder)
    for tool in chain.from_iterable(tools for name, tools in files.items() if name not in _NOT_LEARNT):
        name = f"{tool['server']} {tool['name']}"  # the sources know no more of a tool
        yield TrainingTool(tool["server"], name, "", "", tuple(tool["requests"]))


def masked(tools: Iterable[TrainingTool]) -> Iterator[TrainingTool]:
    """Yield *tools* with the words for its kind in place of each value in their requests."""
    return (replace(tool, queries=tuple(map(without_values, tool.queries))) for tool in tools)


def _labelled_tools(sets: Path, leave: Sequence[str], seed: int) -> dict[str, list[TrainingTool]]:
    folders = sorted(path.parent for path in sets.glob("*/tools.jsonl"))
    names = [folder.name for folder in folders]
    if unknown := sorted(set(leave).difference(names)):
        raise SystemExit(f"no set to leave out is named {', '.join(unknown)}; there are: {', '.join(names)}")
    return {
        folder.name: labelled_tools(folder, most_queries=_MOST_QUERIES, seed=seed)
        for folder in folders
        if folder.name not in leave
    }


def _examples(public: Sequence[TrainingTool], synsets: Sequence[Synset], seed: int) -> list[str]:
    """Tools, their captions, and the words and glosses of WordNet."""
    tools = random.Random(seed).sample(public, min(_EXAMPLES, len(public)))
    texts = [whole_text(tool)[:300] for tool in tools]
    texts += [query for tool in public for query in tool.queries]
    texts += [", ".join(synset.words) for synset in synsets]
    return texts + [synset.gloss for synset in synsets]


def _report(how: StaticTraining, started: float) -> Callable[[int, float], None]:
    losses: list[float] = []

    def on_step(step: int, loss: float) -> None:
        losses.append(loss)
        if step % _REPORT_EVERY == 0 or step == how.steps:
            print(f"step {step} of {how.steps}: loss {np.mean(losses):.3f}, {time.perf_counter() - started:.0f} s")
            losses.clear()

    return on_step


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.static", description=(__doc__ or "").partition("\n")[0])
    root = Path(__file__).parents[2]
    parser.add_argument("--sets", type=Path, default=root.parent / "shared" / "eval", help="the labelled sets")
    parser.add_argument("--out", type=Path, default=BUILT_IN_FOLDER, help="the folder to write")
    parser.add_argument(
        "--cache", type=Path, default=root / ".training", help="for what is fetched and what it takes long"
    )
    parser.add_argument("--start", type=Path, help="begin with the second stage, from this folder of an encoder")
    parser.add_argument("--leave", default="", help="labelled sets to leave out, by comma: to measure on them")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--steps", type=int, default=StaticTraining().steps)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
