"""What this API is called."""

from __future__ import annotations

from typing import Final

PROVIDER: Final = "anthropic"  # as messages name whose they are
API: Final = "Anthropic Messages"
THINKING: Final = ("thinking", "redacted_thinking")  # blocks that hold what a model has thought
