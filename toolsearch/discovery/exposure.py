"""When a catalog needs no search: the model is shown all of it."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.errors import BadSettingError


@dataclass(frozen=True, slots=True)
class PassThrough:
    """When a catalog is so small that the model is shown all of it, since searching would cost more than it saves.

    Both bounds have to hold. With ``max_tools=0`` everything is searched for. The defaults are about what the search
    tool itself and two searches cost.
    """

    max_tools: int = 10
    max_tokens: int = 1_500

    def __post_init__(self) -> None:
        if self.max_tools < 0 or self.max_tokens < 0:
            raise BadSettingError(
                f"a pass-through's bounds are 0 or more; got max_tools={self.max_tools}, max_tokens={self.max_tokens}"
            )

    def covers(self, *, tools: int, tokens: int) -> bool:
        """Whether a catalog of that size is shown whole."""
        return tools <= self.max_tools and tokens <= self.max_tokens
