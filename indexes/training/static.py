"""Trains the built-in encoder and writes its folder.

python -m training.static [--sets ../shared/eval] [--out FOLDER] [--leave SET,SET] [--cache FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from toolsearch_indexes.encoders.protocol import require
from toolsearch_indexes.encoders.static import BUILT_IN_FOLDER, StaticEncoder
from training.corpora import (
    TrainingTool,
    labelled_tools,
    written_tools,
)
from training.lessons import Lessons, Texts, whole_text
from training.pieces import cutter, english_pieces, foreign_pieces, word_counts
from training.sentence_model import minilm_folder, read_tokenizer
from training.sources import WORDNET, fetched, public_tools
from training.static_training import StaticTraining, train
from training.table import FloatArray, as_bytes, first_table
from training.teacher import Teacher
from training.wordnet import Synset, used_synsets

_WRITTEN = Path(__file__).parent / "data"
_MOST_QUERIES = 6_000  # the most queries of one set
_EXAMPLES = 24_000  # tools for which the teacher shows similar ones
_COMMON_WORD = 25  # tools that must say a word to make it common
_REPORT_EVERY = 50  # steps between two reports


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    leave = [name for name in options.leave.split(",") if name]
    how = StaticTraining(steps=options.steps, seed=options.seed)
    require("torch", what="training an encoder", extra="semantic").set_num_threads(options.threads)
    public = public_tools(options.cache, options.seed)
    labelled = _labelled_tools(options.sets, leave, options.seed)
    written = list(written_tools(_WRITTEN))
    print(f"{len(public)} public tools, {sum(map(len, labelled.values()))} of labelled sets, {len(written)} written")

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
    digest = _write(options.out, trained, rows | foreign_pieces(_WRITTEN / "words.tsv", rows), leave)
    print(f"{options.out}: {digest}, after {time.perf_counter() - started:.0f} s")
    return 0


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


def _write(folder: Path, table: FloatArray, pieces: dict[str, int], leave: Sequence[str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    rows = as_bytes(table)
    text = json.dumps(pieces, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(rows.tobytes() + text.encode()).hexdigest()[:16]
    np.save(folder / "table.npy", rows)
    (folder / "pieces.json").write_text(text, encoding="utf-8")
    about = {"name": "toolsearch", "digest": digest, "left_out": list(leave)}
    (folder / "about.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    StaticEncoder(folder)
    return digest


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.static", description=(__doc__ or "").partition("\n")[0])
    root = Path(__file__).parents[2]
    parser.add_argument("--sets", type=Path, default=root.parent / "shared" / "eval", help="the labelled sets")
    parser.add_argument("--out", type=Path, default=BUILT_IN_FOLDER, help="the folder to write")
    parser.add_argument(
        "--cache", type=Path, default=root / ".training", help="for what is fetched and what it takes long"
    )
    parser.add_argument("--leave", default="", help="labelled sets to leave out, by comma: to measure on them")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--steps", type=int, default=StaticTraining().steps)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
