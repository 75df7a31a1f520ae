"""Trains a reader and writes it as int8 ONNX, for OnnxReader.

python -m training.reader --out FOLDER [--start FOLDER_OF_A_TRAINED_TRANSFORMER] [--cache FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from toolsearch_indexes.encoders.protocol import require
from training.corpora import written_tools
from training.onnx_export import FLOAT_WEIGHTS, export_reader
from training.pair_model import PairModel
from training.reader_lessons import ReadingCourse
from training.reader_training import ReaderTraining, train
from training.recipe_options import recipe_parser
from training.reports import StepReport
from training.sentence_model import minilm
from training.sources import public_tools

_DATA = Path(__file__).parent / "data"
_LAYERS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    torch = require("torch", what="training a reader", extra="semantic")
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    start = minilm(layers=_LAYERS)
    if options.start:
        start.bert.load_state_dict(torch.load(options.start / FLOAT_WEIGHTS))
    model = PairModel.on(start)
    how = ReaderTraining(steps=options.steps, questions=options.questions, rate=options.rate, seed=options.seed)
    course = ReadingCourse.of(
        model.tokenizer,
        public_tools(options.cache, options.seed),
        written_tools(_DATA),
        _DATA / "requests",
        _DATA / "out_of_scope.jsonl",
        _DATA / "neighbours.jsonl",
        options.seed,
    )
    for name, shelf in course.shelves.items():
        print(f"{name}: {len(shelf.texts)} tools, {len(shelf.questions)} questions", flush=True)
    report = StepReport(how.steps, started)
    train(model, course, how, report)
    export_reader(model, options.out, max_tokens=how.tokens)
    record = {**asdict(how), "seconds": round(time.perf_counter() - started), "losses": report.losses}
    (options.out / "training.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    how = ReaderTraining()
    parser = recipe_parser("reader", __doc__ or "", steps=how.steps, rate=how.rate)
    parser.add_argument("--start", type=Path, help="what training.transformer wrote with 3 layers; none: MiniLM")
    parser.add_argument("--questions", type=int, default=how.questions, help="in a step")
    return parser


if __name__ == "__main__":
    sys.exit(main())
