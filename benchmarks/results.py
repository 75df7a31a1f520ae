"""What a benchmark has measured, with where, of which version and when: one record for all questions, in JSON."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).parent / "figures"

PACKAGES = (  # whose version may change a figure, where they are installed
    *("numpy", "faiss-cpu", "google-re2", "PyStemmer", "rapidfuzz", "jsonschema", "pydantic"),
    *("mcp", "openai", "anthropic", "fastapi", "uvicorn", "psycopg", "onnxruntime", "sentence-transformers", "torch"),
    *("rank-bm25", "pydantic-ai-slim", "langchain", "botocore", "google-api-python-client"),
)


class Machine(BaseModel):
    """*memory_gib* is what is built in, *versions* those of PACKAGES."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu: str
    cores: int
    memory_gib: float
    python: str
    versions: dict[str, str]


class Result(BaseModel):
    """The figures of one question.

    machine  where they come from; None for a file that was written before there were records
    commit   of the checkout, with a "+" where a file differs from it other than stored figures; empty outside of one
    seed     of what is drawn by chance; None where nothing is
    when     at which they were written, in UTC
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    figures: Any
    machine: Machine | None = None
    commit: str = ""
    seed: int | None = None
    when: datetime | None = None


_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_RECORDED = frozenset({"question", "figures", "machine", "commit"})


def write_figures(path: Path, question: str, figures: Any, *, seed: int | None = None) -> None:
    """Write what was measured here and now. *figures* are made of what JSON has."""
    result = Result(
        question=question,
        figures=figures,
        machine=this_machine(),
        commit=commit_of(ROOT),
        seed=seed,
        when=datetime.now(UTC).replace(microsecond=0),
    )
    path.write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_result(path: Path) -> Result:
    """Read a file of `write_figures`, or one of bare figures, as they were written before, under the file's name.

    Raises ValueError if it is neither.
    """
    content = _JSON.validate_json(path.read_bytes())
    if isinstance(content, dict) and content.keys() >= _RECORDED:
        return Result.model_validate(content)
    return Result(question=path.stem, figures=content)


def read_figures(path: Path) -> Any:
    return read_result(path).figures


def this_machine() -> Machine:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        memory_gib=round(pages / 2**30, 1),
        python=platform.python_version(),
        versions={package: found for package in PACKAGES if (found := _version(package))},
    )


def _cpu_model() -> str:
    """As Linux tells it; elsewhere the architecture."""
    information = Path("/proc/cpuinfo")
    told = information.read_text(encoding="utf-8") if information.exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", told, re.MULTILINE)
    return model[1] if model else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit_of(checkout: Path) -> str:
    """The first twelve digits. Figures that an earlier question of the same run has renewed are no change."""
    try:
        commit = _git(checkout, "rev-parse", "--short=12", "HEAD")
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/figures")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
    return f"{commit}+" if changed else commit


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
