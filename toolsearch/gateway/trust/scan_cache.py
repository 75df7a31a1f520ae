"""Remembers the findings of the scan on disk, so that a start does not scan every definition again."""

from __future__ import annotations

import hashlib
import json
import logging
import unicodedata
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from toolsearch import scanning
from toolsearch.gateway import trust
from toolsearch.scanning.findings import Finding
from toolsearch.storage.private_files import write_private

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Said:
    """The findings in one definition, and its words that would be findings if another server had a tool of that
    name.
    """

    findings: tuple[Finding, ...]
    coined: frozenset[str]


Scanned: TypeAlias = dict[str, Said]  # by pin


class ScanCache:
    """One file for each server. A file that cannot be read, or that other rules have made, counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: str) -> Scanned:
        try:
            kept = json.loads(self._path(server).read_bytes())
            if kept["rules"] != rules_version():
                return {}
            return {
                pin: Said(tuple(Finding(*map(str, each)) for each in findings), frozenset(map(str, coined)))
                for pin, (findings, coined) in kept["said"].items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            logger.warning("the stored findings about %s cannot be read: %r", server, error)
            return {}

    def save(self, server: str, scanned: Mapping[str, Said]) -> None:
        said = {pin: [[astuple(each) for each in of.findings], sorted(of.coined)] for pin, of in scanned.items()}
        kept = {"rules": rules_version(), "said": said}
        try:
            write_private(self._path(server), json.dumps(kept, separators=(",", ":")).encode())
        except OSError as error:
            logger.warning("the findings about %s cannot be stored: %s", server, error)

    def _path(self, server: str) -> Path:
        return self._folder / f"{hashlib.sha256(server.encode('utf-8', 'surrogatepass')).hexdigest()}.json"


@cache
def rules_version() -> str:
    """A version that changes with every file of the rules and of this package, and with Unicode's tables."""
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for package in (scanning, trust):
        for file in sorted(files(package).iterdir(), key=lambda each: each.name):
            if file.name.endswith((".py", ".toml", ".npz")):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
