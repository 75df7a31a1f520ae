"""How long a server may take, unless a setting says otherwise."""

from __future__ import annotations

from typing import Final

CONNECT_TIMEOUT_S: Final = 30.0  # to start, and to answer the first request
CALL_TIMEOUT_S: Final = 60.0
