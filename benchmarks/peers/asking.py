"""A system asked the queries of catalogues, in its own process and environment, and judged as all others are."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import NotInstalledError
from benchmarks.labelled import LabelledSet, quality
from benchmarks.peers.catalogues import as_requested
from benchmarks.peers.environments import packages_of, python_of
from benchmarks.peers.systems import System

LIMIT = 10
WORKER = Path(__file__).parent / "inside" / "worker.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
QUIET = {  # nothing is fetched, nothing is reported to anybody
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_MODE": "PRODUCTION",  # no .env of the folder that it runs in
}

Row = dict[str, Any]  # figures of a system on a catalogue, or {"missing": why}


@dataclass(frozen=True, slots=True)
class Means:
    """
    environments  the folder of them
    vectors       the file of kept ones; None to keep none
    limit_s       of wall time, after which a system is given up; what it has answered by then counts
    """

    environments: Path
    vectors: Path | None = None
    limit_s: float | None = None


def ask(system: System, catalogues: Sequence[LabelledSet], means: Means) -> dict[str, Row]:
    """The rows of the system, by the names of the catalogues."""
    try:
        python = python_of(system.file, means.environments)
    except NotInstalledError as error:
        return {each.name: {"missing": f"could not be installed: {error}"} for each in catalogues}
    fit = [each for each in catalogues if not system.most or len(each.tools) <= system.most]
    too_large = {"missing": f"not asked over more than {system.most:,} tools. {system.about}"}
    return {each.name: too_large for each in catalogues} | _rows(system, fit, python, means)


def _rows(system: System, catalogues: Sequence[LabelledSet], python: Path, means: Means) -> dict[str, Row]:
    requested = [as_requested(each.tools) for each in catalogues]
    request = {
        "system": f"{system.file}:{system.of}",
        "catalogues": [
            {"tools": tools, "queries": [query.text for query in each.queries]}
            for tools, each in zip(requested, catalogues, strict=True)
        ],
        "limit": LIMIT,
        "packages": packages_of(system.file),
        "vectors": str(means.vectors) if means.vectors else None,
    }
    with tempfile.TemporaryDirectory() as folder:
        answers, problem = _answers(python, request, Path(folder), means.limit_s)
    rows: dict[str, Row] = {each.name: {"missing": problem} for each in catalogues}
    for answered, tools, catalogue in zip(answers, requested, catalogues, strict=False):
        ids = {tool["name"]: right["id"] for tool, right in zip(tools, catalogue.tools, strict=True)}
        rows[catalogue.name] = judged(answered, catalogue, ids)
    return rows


def judged(answered: Mapping[str, Any], catalogue: LabelledSet, ids: Mapping[str, str]) -> Row:
    """*ids* are those of the tools, by the names that the system has seen."""
    rankings = [
        ([ids[name] for name in ranking], query.relevant)
        for ranking, query in zip(answered["rankings"], catalogue.queries, strict=True)
    ]
    return {
        **{name: round(value, 4) for name, value in asdict(quality(rankings)).items()},
        "query_ms": round(statistics.median(answered["search_ms"]), 3),
        "index_s": round(answered["index_s"], 2),
        "versions": answered["versions"],
    }


def _answers(
    python: Path, request: Mapping[str, Any], folder: Path, limit_s: float | None
) -> tuple[list[dict[str, Any]], str]:
    """What was answered, and why there is no more."""
    asked, answer = folder / "request.json", folder / "answer.jsonl"
    asked.write_text(json.dumps(request), encoding="utf-8")
    answer.touch()
    try:
        ended = subprocess.run(
            [str(python), str(WORKER), str(asked), str(answer)],
            cwd=folder,
            env={**os.environ, **ONE_THREAD, **QUIET},
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
        problem = _problem(ended)
    except subprocess.TimeoutExpired as error:
        problem = f"takes more than {error.timeout / 60:,.0f} minutes"
    return [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()], problem


def _problem(ended: subprocess.CompletedProcess[str]) -> str:
    if ended.returncode < 0:
        return f"was ended by signal {-ended.returncode}"
    told = ended.stderr.strip().splitlines()
    return f"fails: {told[-1] if told else f'exit code {ended.returncode}'}"
