import fnmatch
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.access.reach import GlobSet, Reach, Rule, RuleKind
from toolsearch.errors import BadSettingError
from toolsearch.tools.definition import ToolDefinition

LOG = ToolDefinition("git__git_log", server="git", tags=("read",))
COMMIT = ToolDefinition("git__git_commit", server="git", tags=("write", "vcs"))
NOW = ToolDefinition("time__now", server="time", tags=("read",))
MEAN = ToolDefinition("mean")


def seen(reach: Reach) -> list[str]:
    return [tool.name for tool in (LOG, COMMIT, NOW, MEAN) if reach.allows(tool)]


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["*"], [], ["git__git_log", "git__git_commit", "time__now", "mean"]),
        ([], [], []),
        (["mean"], [], ["mean"]),
        (["name:mean", "time__now"], [], ["time__now", "mean"]),
        (["git__*"], [], ["git__git_log", "git__git_commit"]),
        (["git*log"], [], ["git__git_log"]),
        (["server:time"], [], ["time__now"]),
        (["server:t?me"], [], ["time__now"]),
        (["tag:read"], [], ["git__git_log", "time__now"]),
        (["tag:v*"], [], ["git__git_commit"]),
        (["*"], ["server:git"], ["time__now", "mean"]),
        (["Mean"], [], []),
    ],
)
def test_a_rule_selects_by_name_server_tag_or_glob(allow: list[str], deny: list[str], expected: list[str]) -> None:
    assert seen(Reach.parse(allow, deny)) == expected


HINTED = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destroy": {"readOnlyHint": False, "destructiveHint": True},
    "silent": {},
}


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["class:read"], [], ["read"]),
        (["class:write"], [], ["silent", "write"]),
        (["*"], ["class:destructive"], ["read", "silent", "write"]),
        (["class:read", "destroy"], [], ["destroy", "read"]),
        (["class:read", "class:write"], ["silent"], ["read", "write"]),
    ],
)
def test_a_rule_selects_by_class_where_a_tool_that_says_nothing_counts_as_one_that_writes(allow, deny, expected):
    reach = Reach.parse(allow, deny)
    tools = [ToolDefinition(name, annotations=hints) for name, hints in HINTED.items()]

    assert sorted(tool.name for tool in tools if reach.allows(tool)) == expected


def test_a_class_is_one_of_three_and_no_glob():
    for rule in ("class:dangerous", "class:*", "class:Read"):
        with pytest.raises(BadSettingError, match="there are read, write, destructive"):
            Rule.parse(rule)


def test_a_deny_rule_beats_every_allow_rule() -> None:
    assert seen(Reach.parse(allow=["git__git_commit", "server:git"], deny=["tag:write"])) == ["git__git_log"]


def test_a_glob_has_to_match_the_whole_text() -> None:
    assert seen(Reach.parse(["git"])) == []
    assert seen(Reach.parse(["*git"])) == []


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("a.b*", ["a.b", "a.bc\nd"], ["axb", "xa.b"]),
        ("[!a-c]x", ["dx", "-x"], ["ax", "cx", "x"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[*]", ["*"], ["a"]),
        ("[\\^]", ["\\", "^"], ["a"]),
        ("?", ["é", "日"], ["", "ab"]),
        ("a|b*", ["a|b"], ["a", "b"]),
    ],
)
def test_a_glob_reads_as_in_a_shell_and_as_no_regular_expression(
    glob: str, matches: list[str], others: list[str]
) -> None:
    globs = GlobSet([glob])

    assert [text for text in matches + others if globs.match(text)] == matches


@given(
    globs=st.lists(st.text("ab.*?", min_size=1, max_size=6), min_size=1, max_size=4),
    text=st.text("ab.", max_size=8),
)
def test_a_set_of_globs_matches_what_any_of_them_matches(globs: list[str], text: str) -> None:
    assert GlobSet(globs).match(text) == any(fnmatch.fnmatchcase(text, glob) for glob in globs)


def test_a_glob_that_would_hold_a_backtracking_matcher_answers_at_once() -> None:
    assert not GlobSet(["*a" * 200 + "b"]).match("a" * 10_000)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot use the reach rule ''"),
        ("server:", "cannot use the reach rule 'server:'"),
        ("owner:me", "write a tool's name or a glob"),
        ("git__[ab", r"has a '\[' without its '\]'"),
        ("[z-a]", "invalid character class range: z-a"),
        ("a" * 513, "513 characters, at most 512"),
    ],
)
def test_a_rule_that_cannot_be_read_says_why(text: str, complaint: str) -> None:
    with pytest.raises(BadSettingError, match=complaint):
        Rule.parse(text)


def test_a_rule_prints_as_it_is_parsed() -> None:
    rule = Rule.parse("server:aws:*")

    assert rule == Rule(RuleKind.SERVER, "aws:*")
    assert Rule.parse(str(rule)) == rule


def test_equal_reaches_are_one_key() -> None:
    assert len({Reach.parse(["a*"], ["b"]), Reach.parse(["a*"], ["b"]), Reach.parse(["a*"])}) == 2


def test_only_a_reach_that_leaves_nothing_out_is_everything() -> None:
    assert Reach().is_everything
    assert Reach.parse(["*"]) == Reach.parse() == Reach()
    assert not Reach.parse([]).is_everything
    assert not Reach.parse(["**"]).is_everything  # although it matches all
    assert not Reach.parse(deny=["mean"]).is_everything


def test_a_server_name_that_is_no_valid_text_is_matched_all_the_same() -> None:
    broken = ToolDefinition("x", server="\ud800")

    assert Reach.parse(["server:*"]).allows(broken)
    assert not Reach.parse(["server:git*"]).allows(broken)


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["*"], ["class:write"], True),
        (["class:read"], [], True),
        (["tag:public"], [], True),
        (["*"], ["tag:internal"], True),
        (["stripe__refund"], [], True),
        (["*__re?und"], [], True),
        (["s[a-z]*e__refund"], [], True),
        (["*"], ["stripe__refund"], True),
        (["stripes__refund"], [], False),
        (["[!s]*__refund"], [], False),
        (["server:git"], [], False),
        ([], [], False),
        (["*"], ["stripe__*"], False),
        (["stripe__refund", "tag:public", "class:read"], ["server:str*"], False),
        (["tag:public"], ["*"], False),
        (["class:read"], ["class:read"], False),
        (["*"], ["class:read", "class:write", "class:destructive"], False),
    ],
)
def test_a_server_is_allowed_as_long_as_one_of_its_tools_could_be(
    allow: list[str], deny: list[str], expected: bool
) -> None:
    reach = Reach.parse(allow, deny)
    assert reach.allows_server("stripe") is expected
    assert (Reach.parse(["*__*", "tag:a"]) & reach).allows_server("stripe") is expected
    assert not (Reach.parse(["server:git"]) & reach).allows_server("stripe")


@pytest.mark.parametrize("glob", ["*" * 512, "*a" * 256, "[!x]" * 128, "?" * 512, "[a-z]*" * 85])
def test_whether_a_server_is_allowed_is_known_at_once_for_the_longest_globs(glob: str) -> None:
    assert Reach.parse([glob]).allows_server("stripe-a" * 5)


ONLY = Reach(only=(("mail", frozenset({"mail__send"})),))


def test_of_a_server_that_is_reached_in_part_only_the_named_entries_are():
    pairs = (("mail", "send"), ("mail", "read"), ("git", "log"))
    send, read, other = (ToolDefinition(f"{server}__{name}", server=server) for server, name in pairs)

    assert [ONLY.allows(each) for each in (send, read, other)] == [True, False, True]
    assert [ONLY.denies(each) for each in (send, read, other)] == [False, True, False]
    assert not ONLY.allows(ToolDefinition("mail__send", server="mail"), original=read)
    assert not ONLY.is_everything


def test_a_part_of_a_server_stays_one_when_reaches_are_joined_written_or_pickled():
    other = Reach(only=(("mail", frozenset({"mail__read", "mail__send"})), ("git", frozenset[str]())))

    both = ONLY & other
    assert both.only == (("git", frozenset()), ("mail", frozenset({"mail__send"})))
    assert (ONLY & Reach(), Reach() & ONLY) == (ONLY, ONLY)
    assert (both.allows_server("mail"), both.allows_server("git"), both.allows_server("x")) == (True, False, True)
    assert pickle.loads(pickle.dumps(both)) == both  # noqa: S301
    assert len({str(each) for each in (ONLY, other, both, Reach())}) == 4
    assert len({ONLY, other, both, Reach()}) == 4
