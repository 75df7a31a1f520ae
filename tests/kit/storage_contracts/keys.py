"""What a place for API keys owes."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.keys import KeyStore, StoredKey


def key(key_id: str, tenant: str = "a") -> StoredKey:
    return StoredKey(
        id=key_id,
        tenant=tenant,
        name=f"the key {key_id}",
        prefix=f"ts_{key_id}",
        sha256=f"hash of {key_id}",
        scopes=("search", "call"),
        created_s=1.0,
        allow=("git__*",),
        deny=("git__push",),
        expires_s=100.0,
    )


class KeyStoreContract:
    def make(self, folder: Path) -> KeyStore:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> KeyStore:
        return self.make(tmp_path)

    def test_a_key_is_found_by_its_hash_and_by_its_id_within_its_tenant(self, kept: KeyStore) -> None:
        kept.add(key("k1"))
        kept.add(operator := replace(key("k2", tenant="b"), is_operator=True, expires_s=None))

        assert kept.by_hash("hash of k1") == key("k1")
        assert kept.by_hash("hash of k2") == operator
        assert kept.by_hash("k1") is None
        assert kept.get("a", "k1") == key("k1")
        assert kept.get("b", "k1") is None

    @pytest.mark.parametrize("twin", [replace(key("k2"), sha256="hash of k1"), key("k1", tenant="b")])
    def test_no_two_keys_have_one_hash_or_one_id(self, kept: KeyStore, twin: StoredKey) -> None:
        kept.add(key("k1"))

        with pytest.raises(StorageError, check=lambda error: error.kept is Kept.KEYS):
            kept.add(twin)
        assert kept.by_hash("hash of k1") == key("k1")

    def test_a_key_is_revoked_once_and_only_within_its_tenant(self, kept: KeyStore) -> None:
        kept.add(key("k1"))

        assert not kept.revoke("b", "k1", at_s=5.0)
        assert kept.by_hash("hash of k1") == key("k1")
        assert (kept.revoke("a", "k1", at_s=6.0), kept.revoke("a", "k1", at_s=7.0)) == (True, False)
        assert kept.by_hash("hash of k1") == replace(key("k1"), revoked_s=6.0)

    def test_the_last_use_is_kept(self, kept: KeyStore) -> None:
        kept.add(key("k1"))
        kept.note_use("k1", at_s=5.0)
        kept.note_use("nobody's", at_s=6.0)

        assert kept.get("a", "k1") == replace(key("k1"), used_s=5.0)

    def test_pages_go_by_id_and_show_revoked_keys_too(self, kept: KeyStore) -> None:
        for each in (key("k3"), key("k1"), key("k2"), key("k0", tenant="b")):
            kept.add(each)
        kept.revoke("a", "k1", at_s=5.0)

        assert [each.id for each in kept.page("a", limit=2)] == ["k1", "k2"]
        assert [each.id for each in kept.page("a", after="k2", limit=2)] == ["k3"]

    def test_only_keys_that_are_good_now_are_counted(self, kept: KeyStore) -> None:
        """k2 is revoked, and the others expire at 100."""
        for each in (key("k1"), key("k2"), replace(key("k3"), expires_s=None), key("k4", tenant="b")):
            kept.add(each)
        kept.revoke("a", "k2", at_s=5.0)

        assert (kept.count("a", at_s=99.0), kept.count("a", at_s=100.0), kept.count("c", at_s=0.0)) == (2, 1, 0)

    def test_the_last_operator_is_the_only_one_with_the_scope_admin_whose_key_is_accepted(self, kept: KeyStore) -> None:
        """k1 expires at 100; the others do not count."""
        last = replace(key("k2"), scopes=("admin",), is_operator=True, expires_s=None)
        for each in (
            replace(last, id="k1", sha256="1", expires_s=100.0),
            last,
            replace(last, id="k3", sha256="3", revoked_s=5.0),
            replace(last, id="k4", sha256="4", scopes=("search",)),
            replace(last, id="k5", sha256="5", is_operator=False),
        ):
            kept.add(each)

        assert not kept.is_last_operator("a", "k2", at_s=99.0)
        assert [kept.is_last_operator("a", f"k{n}", at_s=100.0) for n in range(1, 6)] == [
            False,
            True,
            False,
            False,
            False,
        ]
        assert not kept.is_last_operator("b", "k2", at_s=100.0)

    def test_a_store_is_empty_until_it_had_its_first_key(self, kept: KeyStore) -> None:
        assert kept.is_empty()
        kept.add(key("k1"))
        kept.revoke("a", "k1", at_s=5.0)
        assert not kept.is_empty()
