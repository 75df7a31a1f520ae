"""A provider's prompt cache: by prefix, for a time, reported in tokens.

What is simulated, and what is not:

- A prompt is a row of parts: tools, system text, then the messages, each as canonical JSON, counted with o200k.
- OpenAI caches by itself: before gpt-5.6 at every part; from then on up to the end of the latest message of the user,
  or of the latest result, and it finds what was cached at up to 20 earlier ends of such messages.
- Anthropic caches what stands before a mark (``cache_control``; on the request itself, its end), and looks for it at 20
  parts from each mark back, that of the mark included.
- What is cached lasts for a time since it was last written or read, and for one model.
- There is no least size, no rounding to blocks of tokens and no overhead of a provider's own, and nothing is evicted
  early.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tests.kit.loopback.memory import digests
from tests.kit.loopback.script import TokenCounts
from toolsearch.tokens import default_counter

LOOKBACK = 20
LIFETIMES_S = {"/v1/messages": 300.0, "/v1/chat/completions": 1_800.0, "/v1/responses": 1_800.0}


@dataclass(frozen=True)
class Rendered:
    """A prompt, part by part.

    marks   the numbers of parts that are cached up to; None: the last of *ends*
    ends    the numbers of parts that may be cached up to; None: all, and without marks all of them are
    """

    parts: Sequence[str]
    marks: frozenset[int] | None = None
    ends: Sequence[int] | None = None


@dataclass(frozen=True)
class CacheUse:
    """Tokens of one request.

    prompt    all of it
    readable  what the request before left in the cache, so that the next one could read it
    read      what was found there
    written   what was cached anew
    """

    prompt: int
    readable: int
    read: int
    written: int

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written


class PromptCache:
    """Of one conversation with one model at a time: `uses` has a row for each request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.uses: list[CacheUse] = []
        self._clock = clock
        self._expiry_s: dict[tuple[str, str, str], float] = {}  # by path, model, and digest of the prefix
        self._left: tuple[str, str, int, float] = ("", "", 0, 0.0)  # by the last request: path, model, tokens, expiry

    def use(self, path: str, model: str, prompt: Rendered) -> TokenCounts:
        """Answer for one request."""
        now_s, expiry_s = self._clock(), self._clock() + LIFETIMES_S[path]
        before = digests(prompt.parts)
        totals = [0]
        for part in prompt.parts:
            totals.append(totals[-1] + _tokens(part))
        kept, looked_at = _places(prompt)
        found = [at for at in looked_at if self._expiry_s.get((path, model, before[at]), 0.0) > now_s]
        read, last = max(found, default=0), max(kept, default=0)
        for at in {*kept, read}:
            if at:
                self._expiry_s[path, model, before[at]] = expiry_s
        left_path, left_model, left, left_expiry_s = self._left
        is_warm = (left_path, left_model) == (path, model) and left_expiry_s > now_s
        self._left = (path, model, totals[last], expiry_s)
        use = CacheUse(totals[-1], left if is_warm else 0, totals[read], totals[max(last, read)] - totals[read])
        self.uses.append(use)
        return TokenCounts(input=use.prompt, cached=use.read, cache_write=use.written)


def message_ends(kinds: Iterable[str], before: int) -> list[int]:
    """Which messages OpenAI caches a prompt up to, by their *kinds*: user, result, instructions, or "" for others.

    The last of several results in a row counts, and of the instructions that a conversation begins with. *before* is
    how many parts stand before the messages.
    """
    listed = list(kinds)
    begun = next((number for number, kind in enumerate(listed) if kind != "instructions"), len(listed))
    last_results = (
        number
        for number, (kind, following) in enumerate(zip(listed, [*listed[1:], ""], strict=True))
        if kind == "result" != following
    )
    users = (number for number, kind in enumerate(listed) if kind == "user")
    return sorted(before + number for number in (*users, *last_results, *([begun - 1] if begun else [])))


def _places(prompt: Rendered) -> tuple[Sequence[int], Sequence[int]]:
    """After how many parts the prompt is cached, and looked for."""
    every = range(1, len(prompt.parts) + 1)
    ends = every if prompt.ends is None else [number + 1 for number in prompt.ends]
    if prompt.marks is not None:
        marks = [number + 1 for number in prompt.marks]
        return marks, [at for mark in marks for at in [end for end in ends if end <= mark][-LOOKBACK:]]
    return (every, every) if prompt.ends is None else (ends[-1:], ends[-1 - LOOKBACK :])


@cache
def _tokens(part: str) -> int:
    return default_counter().count(part)
