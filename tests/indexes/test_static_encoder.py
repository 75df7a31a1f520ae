"""The static encoder: how text becomes pieces and pieces a vector, by a table worked by hand; and the one built in."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.static import BUILT_IN_FOLDER, StaticEncoder
from toolsearch_indexes.errors import EncoderError

PIECES = {"create": 0, "issue": 1, "##s": 2, "tickets": 1}  # an issue and tickets share a row
TABLE = [[3, 0], [0, 4], [1, 0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    np.save(folder / "table.npy", np.array(TABLE, np.int8))
    (folder / "pieces.json").write_text(json.dumps(PIECES))
    (folder / "about.json").write_text(json.dumps({"name": "small", "digest": "0123"}))
    return folder


@pytest.fixture(scope="module")
def small(folder: Path) -> StaticEncoder:
    return StaticEncoder(folder)


@pytest.fixture(scope="module")
def built_in() -> StaticEncoder:
    return StaticEncoder()


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("create", [1, 0]),
        ("create create", [1, 0]),  # of unit length, however often it is said
        ("create issue", [0.6, 0.8]),  # 3 and 4 of 5
        ("tickets", [0, 1]),
        ("issues", [1 / 17**0.5, 4 / 17**0.5]),  # issue and ##s
        ("create zebra", [1, 0]),  # what is not known is left out
        ("created", [0, 0]),  # and so is a word of which the rest is not known
        ("zebra", [0, 0]),
        ("", [0, 0]),
        (" \n", [0, 0]),
        ("create " + 4_000 * " " + "issue", [1, 0]),  # the end of a long text is not read
    ],
)
def test_a_text_is_the_direction_of_the_sum_of_its_pieces(small: StaticEncoder, text: str, row: list[float]) -> None:
    assert small.encode_queries([text])[0] == pytest.approx(row, abs=1e-6)


def test_numbers_of_a_long_text_add_up_beyond_16_bits(built_in: StaticEncoder) -> None:
    once, often = built_in.encode_documents(["town", "town " * 720])

    assert int(built_in.table.rows(built_in.pieces["town"]).max()) * 720 > 2**15
    np.testing.assert_allclose(often, once, atol=1e-6)


def test_rows_are_those_of_the_file_in_whatever_order_they_are_asked_for(built_in: StaticEncoder) -> None:
    whole = np.load(BUILT_IN_FOLDER / "table.npy")
    numbers = np.random.default_rng(0).integers(len(whole), size=(20, 3, 7))

    def is_as_in_the_file(some: NDArray[np.int64]) -> bool:
        return np.array_equal(built_in.table.rows(some), whole[some])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_as_in_the_file, [*numbers, *numbers]))


def test_its_pieces_are_a_mapping(built_in: StaticEncoder) -> None:
    written = json.loads((BUILT_IN_FOLDER / "pieces.json").read_bytes())

    assert dict(built_in.pieces) == written
    assert ("weather" in built_in.pieces, "qzv" in built_in.pieces, built_in.pieces.get("qzv")) == (True, False, None)
    with pytest.raises(KeyError):
        built_in.pieces["qzv"]


@pytest.mark.parametrize(
    "text",
    ["createIssue", "create_issue", "create-issue", "CreateISSUE", "CREATE ISSUE", "créateIssue", "ｃｒｅａｔｅ issue"],
)
def test_identifiers_are_read_as_their_words_in_any_case_and_width(small: StaticEncoder, text: str) -> None:
    assert small.encode_queries([text])[0] == pytest.approx([0.6, 0.8], abs=1e-6)


def test_a_word_is_known_if_it_is_one_or_begins_with_one(small: StaticEncoder) -> None:
    words = ("issue", "ISSUE", "createIssue", "créate", "issues", "zebra", "iss")
    assert [small.knows(word) for word in words] == [True, True, True, True, True, False, False]


def test_an_encoder_is_known_by_its_name_and_its_digest(small: StaticEncoder, built_in: StaticEncoder) -> None:
    assert (small.id, small.dimensions) == ("static:small:0123", 2)
    assert built_in.id.startswith("static:toolsearch:")


def test_a_folder_with_a_table_is_opened_by_its_path_and_the_built_in_by_its_name(folder: Path) -> None:
    assert open_encoder(folder).id == "static:small:0123"
    assert open_encoder("built-in") is open_encoder("built-in")  # one for the whole process


@pytest.mark.parametrize("lost", ["table.npy", "pieces.json", "about.json"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_that_holds_no_such_encoder_is_an_error_that_names_it(
    folder: Path, tmp_path: Path, lost: str, is_there: bool
) -> None:
    for file in folder.iterdir():
        if file.name != lost:
            (tmp_path / file.name).write_bytes(file.read_bytes())
        elif is_there:
            (tmp_path / lost).write_bytes(b"nonsense")

    with pytest.raises(EncoderError, match="no usable static encoder") as raised:
        StaticEncoder(tmp_path)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize(
    ("file", "content"),
    [("about.json", '{"digest": "0123"}'), ("pieces.json", '{"create": 99}'), ("pieces.json", "{}")],
)
def test_files_that_do_not_fit_each_other_are_the_same_error(
    folder: Path, tmp_path: Path, file: str, content: str
) -> None:
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / file).write_text(content)

    with pytest.raises(EncoderError, match="no usable static encoder"):
        StaticEncoder(tmp_path)


# The one that is built in


TEXTS = ["send an email", "deleteFile", "", "Wetter in Berlin", "查询天气", "send an email"]


def test_rows_are_of_unit_length_and_those_of_blank_texts_zero(built_in: StaticEncoder) -> None:
    vectors = built_in.encode_documents(TEXTS)

    assert (vectors.shape, vectors.dtype) == ((6, built_in.dimensions), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0, 1, 1, 1], abs=1e-6)
    assert built_in.encode_documents([]).shape == (0, built_in.dimensions)


def test_a_row_depends_on_its_own_text_alone(built_in: StaticEncoder) -> None:
    together = built_in.encode_documents(TEXTS)
    alone = [StaticEncoder().encode_queries([text])[0] for text in TEXTS]

    assert np.array_equal(together, alone)


@pytest.mark.parametrize(
    ("asked", "near", "far"),
    [
        ("erase a document", "delete file", "play song"),
        ("how warm is it outside", "get weather", "send email"),
        ("book an appointment", "create calendar event", "resize image"),
        ("wire money to a friend", "transfer funds", "translate text"),
    ],
)
def test_what_means_the_same_is_nearer_than_what_does_not(
    built_in: StaticEncoder, asked: str, near: str, far: str
) -> None:
    request, tools = built_in.encode_queries([asked])[0], built_in.encode_documents([near, far])

    nearness, distance = tools @ request
    assert nearness > distance + 0.1


def test_it_has_met_words_and_no_letters_at_random(built_in: StaticEncoder) -> None:
    assert all(built_in.knows(word) for word in ("weather", "sendEmail", "repository", "天气"))
    assert not any(built_in.knows(word) for word in ("qwxzv", "jkpfh", "zzyzx", "asdfgh"))
