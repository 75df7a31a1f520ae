"""What a corpus in memory depends on: which records of the store, and which versions of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from toolsearch.service.toolset_specs import TOOLSET, ToolsetSpec
from toolsearch.storage.changes import PINS, Change

NAMES: Final = "toolset_names"  # the kind of the records that say whose tools have the names, by toolset
_CATALOG: Final = "catalog"
_SOURCE: Final = "source"

Versions: TypeAlias = Mapping[tuple[str, str], int]  # of one tenant: by kind and id, as `Change` has them


def by_subject(changes: Iterable[Change]) -> Versions:
    return {(change.kind, change.id): change.version for change in changes}


def versions_of_catalog(name: str, there: Versions) -> Versions:
    """Of what a catalog is made of besides its contents: its sources, and what people decided about what they list."""
    start = f"{name}/"
    return {key: there[key] for key in there if key[0] == PINS or (key[0] == _SOURCE and key[1].startswith(start))}


def versions_of_toolset(spec: ToolsetSpec, name: str, there: Versions) -> Versions:
    """Of what a toolset is made of. Of its catalogs only counts whether they are there."""
    catalogs = {(_CATALOG, each): 0 for each in spec.catalogs if (_CATALOG, each) in there}
    return {key: there[key] for key in [(TOOLSET, name)] if key in there} | catalogs
