"""Our environment variables: the prefix of settings, and variables that are not settings."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "TOOLSEARCH_"
NESTED: Final = "__"  # separates a section from a name
GATEWAY_TOKEN: Final = "TOOLSEARCH_GATEWAY_TOKEN"  # noqa: S105  the name of the variable
SECRET_KEY: Final = "TOOLSEARCH_SECRET_KEY"  # noqa: S105  the key with which a service seals credentials
SECRET_KEY_FILE: Final = "TOOLSEARCH_SECRET_KEY_FILE"  # noqa: S105
STORE: Final = "TOOLSEARCH_STORE"  # the URL of a service's database, perhaps with a password
SERVICE_URL: Final = "TOOLSEARCH_URL"  # the URL at which clients reach a service
SERVICE_KEY: Final = "TOOLSEARCH_KEY"  # the key by which a service knows its clients
NO_SETTINGS: Final = frozenset({GATEWAY_TOKEN, SECRET_KEY, SECRET_KEY_FILE, STORE, SERVICE_URL, SERVICE_KEY})
