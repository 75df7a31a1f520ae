"""The options that the recipes of trained models have in common."""

from __future__ import annotations

import argparse
from pathlib import Path


def recipe_parser(name: str, doc: str, *, steps: int, rate: float) -> argparse.ArgumentParser:
    """Return the parser of ``training.name``. *doc* is the module's docstring: what it does, then its command line."""
    summary, _, usage = doc.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog=f"python -m training.{name}",
        description=summary,
        epilog=usage,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    cache = Path(__file__).parents[2] / ".training"
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--cache", type=Path, default=cache, help="for what is fetched")
    parser.add_argument("--steps", type=int, default=steps, help="0: export what it starts from")
    parser.add_argument("--rate", type=float, default=rate, help="the highest learning rate")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--seed", type=int, default=0)
    return parser
