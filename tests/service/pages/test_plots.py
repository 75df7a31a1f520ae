"""Where the bars and the labels of a plot stand."""

import pytest

from toolsearch.service.pages.filters import BOTTOM, HEIGHT, TOP, Series, Stack, compact, nice_top, stacked_bars

FLOOR = HEIGHT - BOTTOM
TALL = FLOOR - TOP
SENT, SAVED = Series("sent", "sent"), Series("saved", "good")


def test_the_parts_of_a_stack_stand_on_each_other_to_scale() -> None:
    plot = stacked_bars([Stack("1 Mar", (30, 10)), Stack("2 Mar", (80, 0))], (SENT, SAVED))

    low, high, other = plot.bars
    assert (low.height, high.height, other.height) == (
        pytest.approx(TALL * 30 / 80, abs=0.1),
        pytest.approx(TALL * 10 / 80, abs=0.1),
        pytest.approx(TALL, abs=0.1),
    )
    assert low.y + low.height == pytest.approx(FLOOR, abs=0.1)
    assert high.y + high.height == pytest.approx(low.y, abs=0.1)
    assert (high.x, high.text) == (low.x, "1 Mar: 10 saved")
    assert other.x - low.x == pytest.approx(50)


def test_axes_are_labelled_in_quarters_and_with_at_most_eight_places() -> None:
    plot = stacked_bars([Stack(str(day), (1_000.0,)) for day in range(30)], (SENT,))

    assert [mark.text for mark in plot.up] == ["0", "250", "500", "750", "1k"]
    assert [mark.text for mark in plot.across if mark.is_main] == ["0", "8", "16", "24"]
    assert [mark.text for mark in plot.across] == ["0", "4", "8", "12", "16", "20", "24", "28"]


def test_nothing_to_plot_has_axes_all_the_same() -> None:
    plot = stacked_bars([], (SENT,))

    assert (plot.bars, plot.across, len(plot.up)) == ((), (), 5)


@pytest.mark.parametrize(("most", "top"), [(0, 4), (3, 4), (5, 8), (80, 80), (81, 100), (12_800_000, 20_000_000)])
def test_an_axis_ends_at_a_round_number(most: float, top: float) -> None:
    assert nice_top(most) == top


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0"), (950, "950"), (1_500, "1.5k"), (20_000_000, "20M"), (-1_200, "-1.2k")]
)
def test_amounts_are_short_on_axes(amount: float, text: str) -> None:
    assert compact(amount) == text
