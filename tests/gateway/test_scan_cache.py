"""What was scanned before is not scanned again, unless the rules are others."""

import json
import stat

import pytest

from tests.kit.poisoned_tools import tool
from tests.kit.trust import OTHER, PLAIN, POISON, config, judge, listed, why
from toolsearch.gateway.trust import scan
from toolsearch.gateway.trust import scan as scan_cache
from toolsearch.gateway.trust.gate import make_gate
from toolsearch.gateway.trust.verdicts import ReviewReason, tool_entry


def test_a_start_scans_only_what_is_new_and_all_of_it_once_the_rules_are_others(tmp_path, monkeypatch):
    scanned: list[str] = []
    monkeypatch.setattr(scan, "scan_entry", lambda entry: scanned.append(entry["description"]) or [])
    for entry in (PLAIN, PLAIN, OTHER):
        judge(make_gate(config(tmp_path)), entry)
    assert scanned == [PLAIN["description"], OTHER["description"]]

    monkeypatch.setattr(scan_cache, "rules_version", lambda: "others")
    judge(make_gate(config(tmp_path)), OTHER)
    assert scanned[2:] == [OTHER["description"]]


def test_a_verdict_from_the_cache_is_that_of_the_scan(tmp_path):
    neighbour = tool_entry(listed(tool("Sends.", name="send_mail"), "mail"))
    entries = [
        tool_entry(listed(each))
        for each in (POISON, tool("Calls send_mail first.", name="shadow"), tool("Adds.", name="x"))
    ]
    first, again = (make_gate(config(tmp_path)).judge("sums", entries, others=[neighbour]) for _ in range(2))
    assert [each.name for each in first.held] == ["sums__add", "sums__shadow"]
    assert again.held == first.held
    assert make_gate(config(tmp_path)).judge("sums", entries, others=[]).held == first.held[:1]


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"rules": RULES, "said": 2}', '{"rules": RULES, "said": {"a": 1}}']
)
def test_a_cache_of_the_scan_that_cannot_be_read_is_none(tmp_path, content):
    judge(make_gate(config(tmp_path)), POISON)
    (kept,) = (tmp_path / "scans").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_text(content.replace("RULES", json.dumps(scan_cache.rules_version())))

    assert why(judge(make_gate(config(tmp_path)), POISON)) == [ReviewReason.SUSPICIOUS]
