"""What a place for conversations owes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.storage.sessions import MessageStore


class MessageStoreContract:
    def make(self, folder: Path) -> MessageStore[str]:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> MessageStore[str]:
        return self.make(tmp_path)

    def test_a_conversation_is_what_the_last_change_made_of_it(self, kept: MessageStore[str]) -> None:
        kept.update("a", lambda messages: [*messages, "one"])
        kept.update("b", lambda messages: [*messages, "other"])
        kept.update("a", lambda messages: [*messages, "two"])

        assert (kept.load("a"), kept.load("b"), kept.load("never was")) == (["one", "two"], ["other"], [])

    def test_a_deleted_conversation_is_empty(self, kept: MessageStore[str]) -> None:
        kept.update("a", lambda _: ["one"])
        kept.delete("a")
        kept.delete("never was")

        assert kept.load("a") == []

    def test_a_change_that_fails_changes_nothing(self, kept: MessageStore[str]) -> None:
        def fail(messages: list[str]) -> list[str]:
            messages.append("two")
            raise RuntimeError("no")

        kept.update("a", lambda _: ["one"])
        with pytest.raises(RuntimeError):
            kept.update("a", fail)
        kept.update("b", lambda _: ["other"])

        assert (kept.load("a"), kept.load("b")) == (["one"], ["other"])

    def test_of_many_that_change_at_once_none_is_lost(self, kept: MessageStore[str]) -> None:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda n: kept.update("a", lambda messages: [*messages, str(n)]), range(20)))

        assert sorted(kept.load("a"), key=int) == [str(n) for n in range(20)]
