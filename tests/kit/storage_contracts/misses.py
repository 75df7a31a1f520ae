"""What a place for requests without a good answer owes."""

from pathlib import Path

import pytest

from toolsearch.storage.activity import Miss, MissKind, MissLog

CORPUS = "catalog/main"


def miss(kept: MissLog, query: str, at_s: float, *, tenant: str = "a", corpus: str = CORPUS, **more: str) -> None:
    kind: MissKind = "weak" if more else "nothing found"
    kept.add(tenant, corpus, query, kind, best=more.get("best", ""), best_score=0.25 if more else 0.0, at_s=at_s)


class MissLogContract:
    def make(self, folder: Path) -> MissLog:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> MissLog:
        return self.make(tmp_path)

    def test_requests_that_differ_in_case_and_white_space_are_counted_as_one_in_the_words_of_the_last(
        self, kept: MissLog
    ) -> None:
        miss(kept, "Book a  flight", 1.0)
        miss(kept, " book a FLIGHT", 5.0, best="book_hotel")

        assert kept.page("a", CORPUS, limit=9) == [Miss(" book a FLIGHT", "weak", 2, 1.0, 5.0, "book_hotel", 0.25)]

    def test_the_most_frequent_come_first_then_the_latest_then_by_text(self, kept: MissLog) -> None:
        for query, at_s in (("d", 1.0), ("c", 1.0), ("b", 2.0), ("a", 0.0), ("a", 0.5)):
            miss(kept, query, at_s)

        assert [each.query for each in kept.page("a", CORPUS, limit=9)] == ["a", "b", "c", "d"]
        assert [each.query for each in kept.page("a", CORPUS, offset=1, limit=2)] == ["b", "c"]

    def test_misses_are_of_one_corpus_or_of_all_of_the_tenant(self, kept: MissLog) -> None:
        miss(kept, "x", 1.0)
        miss(kept, "x", 2.0, corpus="toolset/t")
        miss(kept, "x", 3.0, tenant="b")

        assert [each.last_s for each in kept.page("a", CORPUS, limit=9)] == [1.0]
        assert [each.last_s for each in kept.page("a", None, limit=9)] == [2.0, 1.0]
        assert kept.page("c", None, limit=9) == []

    def test_a_miss_is_forgotten_in_its_corpus_alone(self, kept: MissLog) -> None:
        miss(kept, "x", 1.0)
        miss(kept, "x", 2.0, corpus="toolset/t")

        assert not kept.forget("b", CORPUS, "x")
        assert (kept.forget("a", CORPUS, " X"), kept.forget("a", CORPUS, "x")) == (True, False)
        assert [each.last_s for each in kept.page("a", None, limit=9)] == [2.0]

    def test_what_was_asked_last_long_ago_is_pruned_and_at_most_so_many_at_once(self, kept: MissLog) -> None:
        for query, at_s in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("a", 9.0)):
            miss(kept, query, at_s)

        assert kept.prune(before_s=9.0, limit=1) == 1
        assert [each.query for each in kept.page("a", CORPUS, limit=9)] == ["a", "c"]
        assert (kept.prune(before_s=9.0, limit=1), kept.prune(before_s=9.0, limit=1)) == (1, 0)
        assert [each.query for each in kept.page("a", CORPUS, limit=9)] == ["a"]
