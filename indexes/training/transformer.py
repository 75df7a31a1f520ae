"""Trains a small transformer for tools and writes it as int8 ONNX, for OnnxEncoder.

python -m training.transformer --out FOLDER [--layers 3] [--cache FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from toolsearch_indexes.encoders.onnx import OnnxEncoder
from toolsearch_indexes.encoders.protocol import require
from training.corpora import written_tools
from training.onnx_export import FLOAT_WEIGHTS, export
from training.recipe_options import recipe_parser
from training.reports import StepReport
from training.sentence_model import SentenceModel, minilm
from training.sources import public_tools
from training.transformer_lessons import Course
from training.transformer_training import TransformerTraining, train

_DATA = Path(__file__).parent / "data"
_PROBES = 200  # texts on which the export is compared with the model


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    torch = require("torch", what="training a transformer", extra="semantic")
    torch.set_num_threads(options.threads)
    model = minilm(layers=options.layers)
    how = TransformerTraining(steps=options.steps, batch=options.batch, rate=options.rate, seed=options.seed)
    report = StepReport(how.steps, started)
    if how.steps:
        course = Course.of(
            model.tokenizer,
            public_tools(options.cache, options.seed),
            written_tools(_DATA),
            _DATA / "requests",
        )
        print("requests: " + ", ".join(f"{name} {len(rows)}" for name, rows in course.requests.items()))
        print(f"parts of tools: {sum(map(len, course.parts.values()))}")
        train(model, minilm(), course, how, report)
    export(model, options.out)
    torch.save(model.bert.state_dict(), options.out / FLOAT_WEIGHTS)
    record = {
        "layers": options.layers,
        **asdict(how),
        "seconds": round(time.perf_counter() - started),
        "losses": report.losses,
    }
    (options.out / "training.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(
        _description(model, options.out, [query for tool in written_tools(_DATA) for query in tool.queries][:_PROBES])
    )
    return 0


def _description(model: SentenceModel, folder: Path, texts: Sequence[str]) -> str:
    """Describe the size of the export, its nearness to the model, and the cost of a query."""
    torch = require("torch", what="training a transformer", extra="semantic")
    encoder = OnnxEncoder(folder)
    with torch.no_grad():
        exact = model.vectors(texts).numpy()
    vectors = encoder.encode_queries(texts)  # encoding all texts also warms up the encoder for the timing
    start = time.process_time()
    for text in texts:
        encoder.encode_queries([text])
    milliseconds = (time.process_time() - start) * 1e3 / len(texts)
    cosines = (exact * vectors).sum(axis=1)
    megabytes = sum(file.stat().st_size for file in folder.iterdir() if file.name != FLOAT_WEIGHTS) / 1e6
    return (
        f"{folder}: {megabytes:.1f} MB; cosines to the model in float: mean {cosines.mean():.4f},"
        f" least {cosines.min():.4f}; {milliseconds:.2f} ms of CPU a query, one thread"
    )


def _parser() -> argparse.ArgumentParser:
    how = TransformerTraining()
    parser = recipe_parser("transformer", __doc__ or "", steps=how.steps, rate=how.rate)
    parser.add_argument("--layers", type=int, choices=(6, 3), default=3, help="of MiniLM's six; 3: every second one")
    parser.add_argument("--batch", type=int, default=how.batch, help="lessons in a step")
    return parser


if __name__ == "__main__":
    sys.exit(main())
