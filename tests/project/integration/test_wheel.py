"""The wheel, built: what is in it, and that the image of the service builds the same."""

import re
import shlex
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from shutil import copyfile, copytree

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[3]
DEPLOYMENT = ROOT / "examples" / "deployment"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def build(source: Path, folder: Path) -> Path:
    [built] = WheelBuilder(str(source)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


def _files_of_pages() -> set[str]:
    """The templates, the stylesheet, the modules of JavaScript and the icons, as they lie in the checkout."""
    pages = ROOT / "toolsearch" / "service" / "pages"
    files = [*(pages / "templates").iterdir(), *(pages / "static").iterdir()]
    return {file.relative_to(pages).as_posix() for file in files}


def test_the_wheel_holds_both_packages_and_their_data_and_nothing_else(wheel: Path) -> None:
    names = names_in(wheel)

    encoder = {
        f"toolsearch_indexes/encoders/built_in/{name}"
        for name in ("README.md", "about.json", "pieces.json", "table.npy")
    }
    pages = {name for name in names if name.startswith("toolsearch/service/pages/") and not name.endswith(".py")}
    scan = {f"toolsearch/scanning/{name}" for name in ("languages.toml", "phrases.toml", "steering.npz")}
    gateway = {"toolsearch/gateway/reports/page.html"} | scan
    shipped = {f"toolsearch/data/{name}" for name in ("NOTICE", "o200k_base.tiktoken.xz", "requests.jsonl.xz")}
    data = shipped | encoder | gateway | pages
    doors = ("", "chat/", "evaluation/", "gateway/", "wire/")
    typed = {"toolsearch/py.typed", "toolsearch_indexes/py.typed"} | {
        f"toolsearch/{door}__init__.pyi" for door in doors
    }
    modules = {name for name in names if name.endswith(".py")}
    metadata = {name for name in names if ".dist-info/" in name}
    assert data | typed <= names
    assert {name.removeprefix("toolsearch/service/pages/") for name in pages} == _files_of_pages()
    assert {name.split("/")[0] for name in modules} == {"toolsearch", "toolsearch_indexes"}
    assert {name.rpartition("/")[2] for name in metadata} == {
        "LICENSE",
        "METADATA",
        "NOTICE",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
    }
    assert names - data - typed - modules - metadata == set()
    assert wheel.stat().st_size < 12_000_000


def test_what_the_build_of_the_image_copies_is_not_ignored_and_is_all_that_the_wheel_takes(
    wheel: Path, tmp_path: Path
) -> None:
    ignoring = (DEPLOYMENT / "Dockerfile.dockerignore").read_text("utf-8").split("\n")
    copies = re.findall(r"^COPY (?!--)(.+) \S+$", (DEPLOYMENT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    for path in (path for each in copies for path in shlex.split(each)):
        assert any(fnmatch(path, line.removeprefix("!")) for line in ignoring if line.startswith("!")), path
        if (ROOT / path).is_dir():
            copytree(ROOT / path, tmp_path / path)
        else:
            copyfile(ROOT / path, tmp_path / path)

    assert names_in(build(tmp_path, tmp_path / "dist")) == names_in(wheel)
