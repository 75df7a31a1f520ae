"""What a person is shown of a definition that waits for approval."""

from tests.kit.skills import REFUND, RULES, entry_of, refund_text
from toolsearch.gateway.approvals.waiting import Waiting
from toolsearch.gateway.trust.verdicts import Kind, ReviewItem, ReviewReason, content_entry
from toolsearch.service.approvals import _waiting_body


def test_all_that_has_changed_in_the_files_of_a_skill_is_in_the_difference() -> None:
    before = entry_of({REFUND: refund_text(), RULES: "No refund."})
    main, rules = before["resources"]
    now = {**before, "resources": [{**rules, "uri": "skill://refunds/r%75les.md", "note": "Look here."}, main]}
    held = ReviewItem.of(content_entry("shop", Kind.SKILL, now), ReviewReason.CHANGED)
    assert _waiting_body(Waiting(held, before, now)).difference == [
        "files.rules.md.uri: skill://refunds/[-rules-]{+r%75les+}.md",
        "files.rules.md.note: {+Look here.+}",
    ]
