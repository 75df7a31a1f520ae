"""A store of sessions that counts how often it is read and written."""

from typing import Any

import pytest

from tests.kit.kept_sessions import Counted
from toolsearch.discovery.view import ViewCache


@pytest.fixture
def kept() -> Counted:
    return Counted()


@pytest.fixture
def views(kept: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the views that are looked up, too."""
    get = ViewCache.get

    def counted(self: ViewCache, *given: Any) -> Any:
        kept.done["views"] += 1
        return get(self, *given)

    monkeypatch.setattr(ViewCache, "get", counted)
