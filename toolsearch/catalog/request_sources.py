"""Where the requests of an index come from: users' own files first, then the packs that ship."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from toolsearch.catalog.request_packs import NO_REQUESTS, RequestOptions, RequestSource, shipped_requests
from toolsearch.catalog.requests_file import packs_in
from toolsearch.errors import BadSettingError
from toolsearch.tools.definition import ToolDefinition


class RequestChain:
    """What each of *sources* says of a tool, in their order."""

    def __init__(self, sources: Sequence[RequestSource]) -> None:
        self._sources = sources
        self.id = " ".join(source.id for source in sources)
        self.options = RequestOptions(
            any(source.options.shipped for source in sources),
            tuple(path for source in sources for path in source.options.files),
        )

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        return tuple(request for source in self._sources for request in source.requests_for(definition))


def request_source(*, shipped: bool, files: Iterable[str | Path] = ()) -> RequestSource:
    """Return what *files* say, and behind it what ships if *shipped* is set.

    Raises RequestsFileError if a file cannot be read as a whole, and BadSettingError if *files* is no list of paths.
    """
    sources = [packs_in(path) for path in file_list(files)]
    sources += [shipped_requests()] if shipped else []
    if len(sources) == 1:
        return sources[0]
    return RequestChain(sources) if sources else NO_REQUESTS


def file_list(files: Iterable[str | Path]) -> tuple[Path, ...]:
    """Raises BadSettingError for what is no list of paths: one text would be as many paths as it has letters."""
    given = cast("object", files)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise BadSettingError(f"requests_files must be a list of paths, not {ascii(files)[:80]}; write [path]")
    paths = tuple(cast("Iterable[object]", given))
    for path in paths:
        if not isinstance(path, str | Path) or not str(path).strip():
            raise BadSettingError(f"requests_files must hold paths, and {ascii(path)[:80]} is none")
    return tuple(Path(cast("str | Path", path)) for path in paths)
