"""Prints the OpenAPI document, ``docs/openapi.json``, which is made from the routes.

To write it anew:

    python -m toolsearch.service.openapi_page > docs/openapi.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from toolsearch.service.app import make_app
from toolsearch.service.service import Service
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.sqlite.place import SqliteStorage


def openapi_page() -> str:
    """The whole document, as JSON."""
    with TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "toolsearch.db")
        try:
            document = make_app(Service(ServiceSettings(), storage)).openapi()
        finally:
            storage.close()
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(openapi_page())
