"""Which model a report is about, and what its tokens cost, from the options of ``toolsearch bench savings``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from toolsearch.errors import BadSettingError, UnknownPriceError

if TYPE_CHECKING:
    from toolsearch.bench.prices import Prices
    from toolsearch.wire.capabilities import Endpoint

DEFAULT_MODELS: Final[Mapping[str, str]] = {
    "anthropic": "claude-sonnet-5-5",
    "openai-responses": "gpt-6.2-sol",
    "openai": "gpt-5.1",  # later ones take no tools at Chat Completions while they reason
}
_NAMES: Final = ("input", "output", "cache_read", "cache_write")
_SOURCE: Final = "--prices"


def endpoint_of(wire_format: str | None, model: str | None) -> Endpoint:
    """What is not given follows from what is: Claude models speak Anthropic's format, others OpenAI's Responses."""
    from toolsearch.wire.capabilities import Endpoint

    if wire_format is None:
        wire_format = "openai-responses" if model and "claude" not in model.lower() else "anthropic"
    if wire_format not in DEFAULT_MODELS:
        raise BadSettingError(f"--format must be one of {', '.join(DEFAULT_MODELS)}, not {wire_format!r:.80}")
    return Endpoint(wire_format, model or DEFAULT_MODELS[wire_format])


def prices_for(endpoint: Endpoint, given: str | None) -> Prices:
    """What the table says of the model, and what *given* says instead, as ``input=3,output=15``.

    A model that the table does not know needs at least these two. Without a price of its own, what is cached costs what
    other input does; the rules of the cache are those of the format's default model. Raises BadSettingError.
    """
    from toolsearch.bench.prices import prices_of

    own = _read(given) if given is not None else {}
    try:
        known = prices_of(endpoint.model)
    except UnknownPriceError as error:
        if not own:
            known_models = ", ".join(error.known)
            raise BadSettingError(
                f"no price is known of the model {endpoint.model!r:.80}; give --prices input=..,output=.., in dollars "
                f"for a million tokens, or one of these as --model: {known_models}"
            ) from error
        return _of_unknown(prices_of(DEFAULT_MODELS[endpoint.wire_format]), own)
    if not own:
        return known
    source = _SOURCE if len(own) == len(_NAMES) else f"{_SOURCE}; for what it does not name, {known.source}"
    return _with(known, own, source)


def _of_unknown(like: Prices, own: Mapping[str, float]) -> Prices:
    missing = [name for name in ("input", "output") if name not in own]
    if missing:
        raise BadSettingError(f"--prices must have {' and '.join(missing)} for a model that the table does not know")
    of_cache = dict.fromkeys(("cache_read", "cache_write"), own["input"])
    return _with(replace(like, long_cache_write=None, long_prompts=None), {**of_cache, **own}, _SOURCE)


def _with(prices: Prices, own: Mapping[str, float], source: str) -> Prices:
    changes: dict[str, Any] = {**own, "source": source, "looked_up": ""}
    return replace(prices, **changes)


def _read(given: str) -> dict[str, float]:
    read: dict[str, float] = {}
    for part in given.split(","):
        name, _, value = (side.strip() for side in part.partition("="))
        if name not in _NAMES or name in read:
            raise BadSettingError(
                f"--prices takes {', '.join(_NAMES)}, each once, as input=3,output=15; not {part!r:.80}"
            )
        try:
            read[name] = float(value)
        except ValueError:
            raise BadSettingError(f"--prices: {name} must be a number of dollars, not {value!r:.80}") from None
    return read
