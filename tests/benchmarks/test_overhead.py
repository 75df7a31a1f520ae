"""The overhead benchmark runs, and what it compares holds the same conversation."""

from benchmarks import overhead


async def test_every_loop_that_is_installed_is_measured() -> None:
    loops = {name: loop for name, (module, loop) in overhead.LOOPS.items() if module == "toolsearch"}

    figures = await overhead.measure(loops, times=1)

    assert [figure.loop for figure in figures] == ["toolsearch", "toolsearch, with search"]


def test_the_script_makes_as_many_calls_as_it_says_no_two_of_them_alike() -> None:
    script = overhead.Script(rounds=2, calls=3)

    calls = [call for done in range(script.rounds) for call in overhead._calls(script, done)]

    assert len({key for key, _ in calls}) == 6
    assert calls[4] == ("c1_1", {"a": 1, "b": 1})


def test_what_is_not_installed_is_left_out_with_a_message(monkeypatch, capsys) -> None:
    monkeypatch.setattr(overhead, "LOOPS", {"nobody's": ("no_such_package", overhead.pydantic_ai_loop)})

    assert overhead.main(["--times", "1"]) == 0

    assert "nobody's is left out" in capsys.readouterr().err
