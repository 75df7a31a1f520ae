"""A prefix cache that counts. Tokens are bytes of the canonical prompt divided by four."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from .core import tokens


@dataclass(frozen=True)
class Segment:
    """One piece of the prompt; `mark` says that the caller put a cache mark on it."""

    text: str
    mark: bool = False
    hour: bool = False


@dataclass(frozen=True)
class Count:
    """Tokens of one prompt: all, read from the cache, written to it (five minutes and one hour)."""

    total: int
    cached: int = 0
    written: int = 0
    written_hour: int = 0


class PrefixCache:
    """Remembers the prefixes of earlier prompts.

    `marked` counts as the Messages API does: prefixes are written at marks only and read back from a mark or from up
    to `lookback` blocks before one. `automatic` counts as OpenAI does: every block boundary, in steps of `step`.
    """

    def __init__(self, *, least: int = 0, lookback: int = 20, step: int = 1) -> None:
        self.least = least
        self.lookback = lookback
        self.step = step
        self._known: set[str] = set()

    def _walk(self, scope: str, segments: Iterable[Segment]) -> tuple[list[str], list[int]]:
        running = hashlib.sha256(scope.encode())
        keys: list[str] = []
        sizes: list[int] = []
        size = 0
        for segment in segments:
            data = segment.text.encode("utf-8", "surrogatepass")
            running.update(hashlib.sha256(data).digest())
            size += len(data)
            keys.append(running.hexdigest())
            sizes.append(size)
        return keys, sizes

    def marked(self, scope: str, segments: list[Segment], *, write: bool = True) -> Count:
        """Count a prompt whose cache marks the caller has set."""
        keys, sizes = self._walk(scope, segments)
        total = tokens(sizes[-1]) if sizes else 0
        marks = [index for index, segment in enumerate(segments) if segment.mark]
        hit = -1
        for mark in marks:
            for index in range(mark, max(-1, mark - self.lookback - 1), -1):
                if index > hit and keys[index] in self._known:
                    hit = index
        cached = tokens(sizes[hit]) if hit >= 0 else 0
        if cached < self.least:
            hit, cached = -1, 0
        written = hour = 0
        before = cached
        for mark in marks:
            if mark <= hit or tokens(sizes[mark]) < self.least:
                continue
            part = tokens(sizes[mark]) - before
            before = tokens(sizes[mark])
            written += part
            hour += part if segments[mark].hour else 0
        if write:
            self._known.update(keys[mark] for mark in marks if tokens(sizes[mark]) >= self.least)
        return Count(total, cached, written, hour)

    def automatic(self, scope: str, segments: list[Segment], *, write: bool = True) -> Count:
        """Count a prompt that is cached without marks."""
        keys, sizes = self._walk(scope, segments)
        total = tokens(sizes[-1]) if sizes else 0
        cached = 0
        for key, size in zip(keys, sizes, strict=True):
            if key not in self._known:
                break
            cached = tokens(size)
        cached -= cached % self.step
        if cached < self.least:
            cached = 0
        if write:
            self._known.update(keys)
        return Count(total, cached, 0)
