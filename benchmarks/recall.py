"""Does a search find the right tools? Recall, nDCG and MRR on labelled sets, against rank-bm25.

python -m benchmarks.recall [--sets ../shared/eval] [--encoder FOLDER_OR_NAME] [--left-out FOLDER] [--reader SPEC]
                           [--json FILE]

The built-in encoder has learnt from the train parts of these sets. What it does for a catalog that it has not seen is
told by "left out": encoders trained as it was, but without the set that they are asked about.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.baselines import RankBm25, name_and_description, plain_words, prepared_words, with_parameters
from benchmarks.datasets import add_sets_option, set_folders
from benchmarks.figure_tables import print_table
from benchmarks.labelled import SEED, LabelledSet, Quality, quality, read_set
from benchmarks.results import write_figures
from toolsearch_indexes.documents import ToolDocument, document_from_schema
from toolsearch_indexes.encoders.opening import BUILT_IN, TRANSFORMER, open_encoder, transformer_beside
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.reader import NO_READER, Reader, open_reader
from toolsearch_indexes.vector_cache import VectorCache

DEPTH = 10
READ = ", read"  # behind the name of a search whose first tools a reader reads again
_CACHE = Path(__file__).parent / ".cache"

# recall@5 of a stemmed BM25 with split identifiers and parameters, as measured before this engine was written: what its
# keyword search has to reach. Its recipe was not kept; "rank-bm25 prepared" is near it.
KEYWORD_BAR = {
    "apibench": 0.218,
    "azcli": 0.761,
    "bfcl": 0.831,
    "livemcp": 0.350,
    "metatool": 0.641,
    "sealtools": 0.817,
    "tldr": 0.407,
}

Search = Callable[[str], list[str]]  # a query to ids, best first, at most DEPTH
Tools = Sequence[Mapping[str, Any]]
System = Callable[[Tools], Search]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folders = set_folders(options.sets)
    if not folders:
        print(f"no labelled sets in {options.sets}: folders with tools.jsonl and queries.test.jsonl", file=sys.stderr)
        return 2
    chosen = chosen_systems(options.systems)
    reader = reader_to_measure(options.reader)
    results: dict[str, dict[str, Quality]] = {}
    for folder in folders:
        labelled = read_set(folder)
        left_out = encoder_without(labelled.name, options.left_out)
        systems = systems_to_measure(options.encoder, left_out=left_out, reader=reader)
        results[labelled.name] = {
            name: measure(system, labelled) for name, system in systems.items() if chosen is None or name in chosen
        }
    _print_table(results)
    if options.json:
        write_figures(options.json, "recall", _plain(results), seed=SEED)
    return 0


def measure(system: System, labelled: LabelledSet) -> Quality:
    """Index the set's tools, run its sample of queries, and judge."""
    search = system(labelled.tools)
    return quality([(search(query.text), query.relevant) for query in labelled.queries])


def systems_to_measure(
    encoders: Sequence[str] = (), *, left_out: Encoder | None = None, reader: Reader | None = None
) -> dict[str, System]:
    """Baselines, and ours with each of `encoders_to_measure`; if there is a *reader*, hybrid also with it."""
    opened = encoders_to_measure(encoders, left_out=left_out)
    return {
        "rank-bm25 plain": partial(_rank_bm25, name_and_description, plain_words),
        "rank-bm25 prepared": partial(_rank_bm25, with_parameters, prepared_words),
        "keyword": partial(_engine, None, "keyword"),
        **{f"semantic{which}": partial(_engine, each, "semantic") for which, each in opened.items()},
        **{f"hybrid{which}": partial(_engine, each, "hybrid") for which, each in opened.items()},
        **{
            f"hybrid{which}{READ}": partial(_engine, each, "hybrid", reader=reader)
            for which, each in opened.items()
            if reader
        },
    }


def encoders_to_measure(specs: Sequence[str], *, left_out: Encoder | None = None) -> dict[str, Encoder]:
    """What is built in, without a name; the one *left_out* of training what is asked; *specs*, by their names. The
    transformer stands beside the one that is left out, too.
    """
    encoders = {"": open_encoder(BUILT_IN)}
    if left_out:
        encoders[" (left out)"] = left_out
    for spec in specs:
        name = f" ({Path(spec).name})"
        encoders[name] = transformer_beside(left_out) if left_out and spec == TRANSFORMER else open_encoder(spec)
    return encoders


def add_encoder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoder", action="append", default=[], help="also measure semantic and hybrid with this model; repeatable"
    )


def add_reader_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reader", metavar="SPEC", help="also measure hybrid with the first tools read again: auto, or a folder"
    )


def reader_to_measure(spec: str | None) -> Reader | None:
    """Return the reader that an option asks for; None if it asks for none. Raises EncoderError if it is not here."""
    if spec is None or spec == NO_READER:
        return None
    reader = open_reader(spec)
    if reader is None:
        raise EncoderError(f"no reader is installed for {spec!r}; add indexes/reader to PYTHONPATH, or name a folder")
    return reader


def add_systems_option(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument("--systems", help=f"only these, by comma without a space: '{example}'")


def chosen_systems(text: str | None) -> frozenset[str] | None:
    """The names in *text*, apart by commas; one that a space follows is part of a name, as in "hybrid, read"."""
    return frozenset(re.split(r",(?! )", text)) if text else None


def encoder_without(name: str, folder: Path | None) -> Encoder | None:
    """Return an encoder out of *folder*'s folders whose training left the set *name* out."""
    for about in sorted(folder.glob("*/about.json")) if folder else ():
        if name in json.loads(about.read_text(encoding="utf-8"))["left_out"]:
            return StaticEncoder(about.parent)
    return None


def _rank_bm25(text: Callable[[Mapping[str, Any]], str], tokenize: Callable[[str], list[str]], tools: Tools) -> Search:
    bm25 = RankBm25([tool["id"] for tool in tools], [text(tool) for tool in tools], tokenize)
    return lambda query: bm25.search(query, DEPTH)


def _engine(encoder: Encoder | None, strategy: Ranking, tools: Tools, *, reader: Reader | None = None) -> Search:
    index = index_of(tools, encoder, reader)
    return lambda query: [hit.name for hit in index.search(query, limit=DEPTH, strategy=strategy)]


@cache
def _vectors() -> VectorCache:
    """What a slow encoder has embedded, kept for the next run."""
    _CACHE.mkdir(exist_ok=True)
    return VectorCache(_CACHE / "vectors.sqlite")


def index_of(tools: Tools, encoder: Encoder | None, reader: Reader | None = None) -> ToolSearchIndex:
    return ToolSearchIndex(documents_of(tools), encoder=encoder, cache=_vectors(), reader=reader)


def documents_of(tools: Tools) -> list[ToolDocument]:
    """As an index gets them, by their ids."""
    return [
        document_from_schema(
            name=tool["id"],
            description=tool["description"],
            input_schema=tool["input_schema"],
            server=tool.get("server", ""),
            local_name=tool["name"],
        )
        for tool in tools
    ]


def _plain(results: Mapping[str, Mapping[str, Quality]]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {
            system: {measure: round(value, 4) for measure, value in asdict(judged).items()}
            for system, judged in by_system.items()
        }
        for name, by_system in results.items()
    }


def _print_table(results: Mapping[str, Mapping[str, Quality]]) -> None:
    columns = ("set", "system", "recall@1", "recall@5", "recall@10", "nDCG@10", "MRR@10", "bar @5")
    rows: list[Sequence[str]] = []
    for name, by_system in results.items():
        for system, judged in by_system.items():
            bar = f"{KEYWORD_BAR[name]:.3f}" if system == "keyword" and name in KEYWORD_BAR else ""
            rows.append((name, system, *(f"{value:.3f}" for value in asdict(judged).values()), bar))
    print_table(columns, rows, by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__.partition("\n")[0])
    add_sets_option(parser)
    add_encoder_option(parser)
    parser.add_argument("--left-out", type=Path, help="a folder of encoders' folders, each trained without some sets")
    add_reader_option(parser)
    add_systems_option(parser, "rank-bm25 plain,keyword")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
