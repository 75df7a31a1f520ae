"""However a catalog grows and shrinks: whether it is shown whole changes only where it has left the slack."""

from hypothesis import given
from hypothesis import strategies as st

from toolsearch import PassThrough
from toolsearch.discovery.pass_through import PassThroughDecisions

BOUND = 100
SIZES = st.lists(st.integers(1, 2 * BOUND), min_size=1, max_size=30)


@given(sizes=SIZES, slack=st.sampled_from([0.0, 0.25, 1.0]), is_of_tokens=st.booleans())
def test_a_list_turns_only_where_the_catalog_has_left_the_slack(sizes: list[int], slack: float, is_of_tokens: bool):
    """Between three quarters of the bounds and the bounds with their slack, it stays as it was."""
    decisions, rule = PassThroughDecisions(), PassThrough(max_tools=BOUND, max_tokens=BOUND, slack=slack)
    whole: bool | None = None
    for version, size in enumerate(sizes):
        tools, tokens = (1, size) if is_of_tokens else (size, 1)

        def is_whole(version: int = version, tools: int = tools, tokens: int = tokens) -> bool:
            return decisions.is_whole(rule, version, tools=tools, tokens=lambda: tokens)

        before, whole = whole, is_whole()
        assert is_whole() == whole
        if before is None:
            assert whole == (size <= BOUND)
        elif whole != before:
            assert size <= 0.75 * BOUND if whole else size > BOUND * (1 + slack)
