"""The two lanes: which tests are fast, and that a fast test can start nothing."""

import pytest

HOOKS = "from tests.kit.lanes import *"
BY_FOLDER = "import subprocess\ndef test_of_a_folder(): subprocess.run(['true'], check=True)"
STARTS = """
import socket, subprocess
from contextlib import suppress

def test_that_needs_nothing(): ...

def test_that_starts_a_process(): subprocess.run(["true"])

def test_that_listens():
    with socket.socket() as listening: listening.bind(("127.0.0.1", 0))

def test_that_hides_what_it_starts():
    with suppress(Exception): subprocess.run(["true"])

def test_that_uses_a_fixture(run_python): subprocess.run(["true"], check=True)
"""
FIXTURE = "\nimport pytest\n@pytest.fixture\ndef run_python(): ..."


@pytest.fixture
def project(tmp_path):
    (tmp_path / "conftest.py").write_text(HOOKS + FIXTURE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_mixed.py").write_text(STARTS)
    (tmp_path / "integration").mkdir()
    (tmp_path / "integration" / "test_real.py").write_text(BY_FOLDER)
    return tmp_path


def test_a_test_starts_something_only_by_its_folder_or_by_a_fixture(project, run_pytest):
    assert run_pytest(project) == {
        "test_of_a_folder": "PASSED",
        "test_that_needs_nothing": "PASSED",
        "test_that_starts_a_process": "FAILED",
        "test_that_listens": "FAILED",
        "test_that_hides_what_it_starts": "FAILED",
        "test_that_uses_a_fixture": "PASSED",
    }


def test_the_fast_lane_has_only_what_needs_this_process_alone(project, run_pytest):
    (project / "integration" / "test_broken.py").write_text("raise AssertionError('this is not even imported')")

    assert sorted(run_pytest(project, "-m", "not slow")) == [
        "test_that_hides_what_it_starts",
        "test_that_listens",
        "test_that_needs_nothing",
        "test_that_starts_a_process",
    ]


def test_files_with_slow_tests_come_first_so_that_workers_end_together(project, run_pytest):
    (project / "test_alone.py").write_text("def test_alone(): ...")

    assert list(run_pytest(project))[-1] == "test_alone"


@pytest.fixture
def run_pytest(start_python):
    """Run pytest in a folder, and return what became of each test."""

    def run(folder, *options):
        arguments = ("-m", "pytest", "-v", "-p", "no:cacheprovider", *options)
        process = start_python(*arguments, cwd=folder, PYTEST_ADDOPTS="")  # those of this run mean nothing there
        words = [line.split() for line in process.communicate()[0].splitlines() if "::" in line]
        return {word[0].rpartition("::")[2]: word[1] for word in words if word[1] in ("PASSED", "FAILED", "ERROR")}

    return run
