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

import numpy as np

from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.onnx import OnnxEncoder
from training.corpora import written_tools
from training.onnx_export import export
from training.sentence_model import SentenceModel, minilm
from training.sources import public_tools
from training.transformer_lessons import Course
from training.transformer_training import TransformerTraining, train

_DATA = Path(__file__).parent / "data"
_REPORT_EVERY = 25  # steps
_PROBES = 200  # texts by which the export is compared with the model


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    require("torch", what="training a transformer", extra="semantic").set_num_threads(options.threads)
    model = minilm(layers=options.layers)
    how = TransformerTraining(steps=options.steps, batch=options.batch, rate=options.rate, seed=options.seed)
    losses: list[float] = []
    if how.steps:
        course = Course.of(
            model.tokenizer,
            public_tools(options.cache, options.seed),
            written_tools(_DATA),
            _DATA / "requests",
        )
        print("requests: " + ", ".join(f"{name} {len(rows)}" for name, rows in course.requests.items()))
        print(f"parts of tools: {sum(map(len, course.parts.values()))}")
        train(model, minilm(), course, how, _Report(losses, how.steps, started))
    export(model, options.out)
    record = {
        "layers": options.layers,
        **asdict(how),
        "seconds": round(time.perf_counter() - started),
        "losses": losses,
    }
    (options.out / "training.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(
        _description(model, options.out, [query for tool in written_tools(_DATA) for query in tool.queries][:_PROBES])
    )
    return 0


class _Report:
    def __init__(self, losses: list[float], steps: int, started: float) -> None:
        self._losses, self._steps, self._started = losses, steps, started

    def __call__(self, step: int, loss: float) -> None:
        self._losses.append(round(loss, 4))
        if step % _REPORT_EVERY == 0 or step == self._steps:
            mean, seconds = np.mean(self._losses[-_REPORT_EVERY:]), time.perf_counter() - self._started
            print(f"step {step} of {self._steps}: loss {mean:.3f}, {seconds:.0f} s", flush=True)


def _description(model: SentenceModel, folder: Path, texts: Sequence[str]) -> str:
    """Say how large the export is, how near it is to the model, and what a query costs."""
    torch = require("torch", what="training a transformer", extra="semantic")
    encoder = OnnxEncoder(folder)
    with torch.no_grad():
        exact = model.vectors(texts).numpy()
    vectors = encoder.encode_queries(texts)  # one by one, and warms up what is timed next
    start = time.process_time()
    for text in texts:
        encoder.encode_queries([text])
    milliseconds = (time.process_time() - start) * 1e3 / len(texts)
    cosines = (exact * vectors).sum(axis=1)
    megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    return (
        f"{folder}: {megabytes:.1f} MB; cosines to the model in float: mean {cosines.mean():.4f},"
        f" least {cosines.min():.4f}; {milliseconds:.2f} ms of CPU a query, one thread"
    )


def _parser() -> argparse.ArgumentParser:
    summary, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m training.transformer",
        description=summary,
        epilog=usage,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    defaults = TransformerTraining()
    root = Path(__file__).parents[2]
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--layers", type=int, choices=(6, 3), default=3, help="of MiniLM's six; 3: every second one")
    parser.add_argument("--cache", type=Path, default=root / ".training", help="for what is fetched")
    parser.add_argument("--steps", type=int, default=defaults.steps, help="0: export MiniLM as it is")
    parser.add_argument("--batch", type=int, default=defaults.batch, help="lessons in a step")
    parser.add_argument("--rate", type=float, default=defaults.rate, help="the highest learning rate")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
