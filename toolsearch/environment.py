"""The environment variables that are ours: settings, by a prefix, and those that are none."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "TOOLSEARCH_"
NESTED: Final = "__"  # between a section and a name in it
GATEWAY_TOKEN: Final = "TOOLSEARCH_GATEWAY_TOKEN"  # noqa: S105  the name of the variable
SECRET_KEY: Final = "TOOLSEARCH_SECRET_KEY"  # noqa: S105  what a service seals credentials with
SECRET_KEY_FILE: Final = "TOOLSEARCH_SECRET_KEY_FILE"  # noqa: S105
STORE: Final = "TOOLSEARCH_STORE"  # the URL of a service's database, which may have a password
SERVICE_URL: Final = "TOOLSEARCH_URL"  # where clients reach a service
SERVICE_KEY: Final = "TOOLSEARCH_KEY"  # and what they say who they are by
NO_SETTINGS: Final = frozenset({GATEWAY_TOKEN, SECRET_KEY, SECRET_KEY_FILE, STORE, SERVICE_URL, SERVICE_KEY})
