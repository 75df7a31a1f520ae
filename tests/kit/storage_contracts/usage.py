"""What a place for what was learnt from use owes."""

from pathlib import Path

import pytest

from toolsearch.storage.usage import StoredWeight, UsageCell, UsageStore

MAIL, EVENT = UsageCell("mail", "send_mail"), UsageCell("event", "list_events")


class UsageStoreContract:
    def make(self, folder: Path) -> UsageStore:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> UsageStore:
        return self.make(tmp_path)

    def test_weights_add_up_after_what_was_there_has_faded(self, kept: UsageStore) -> None:
        """Two half-lives leave a quarter of 4."""
        kept.add("shop", {MAIL: 4.0}, at_s=0.0, half_life_s=10.0)
        kept.add("shop", {MAIL: 1.0, EVENT: 3.0}, at_s=20.0, half_life_s=10.0)

        assert kept.load("shop") == [StoredWeight(EVENT, 3.0, 20.0), StoredWeight(MAIL, 2.0, 20.0)]

    def test_each_keeps_its_own(self, kept: UsageStore) -> None:
        kept.add("shop", {MAIL: 1.0}, at_s=0.0, half_life_s=1.0)
        kept.add("", {EVENT: 1.0}, at_s=0.0, half_life_s=1.0)

        assert kept.load("shop") == [StoredWeight(MAIL, 1.0, 0.0)]
        assert (kept.load("nobody"), kept.principals()) == ([], ["", "shop"])

    def test_what_is_dropped_or_reset_is_gone(self, kept: UsageStore) -> None:
        for who in ("a", "b", "c"):
            kept.add(who, {MAIL: 1.0, EVENT: 1.0}, at_s=0.0, half_life_s=1.0)
        kept.drop("a", [MAIL, UsageCell("never", "was")])
        kept.drop("nobody", [MAIL])
        kept.reset("b")

        assert kept.load("a") == [StoredWeight(EVENT, 1.0, 0.0)]
        assert kept.principals() == ["a", "c"]
        kept.drop("a", [EVENT])
        assert kept.principals() == ["c"]
        kept.reset(None)
        assert kept.principals() == []
