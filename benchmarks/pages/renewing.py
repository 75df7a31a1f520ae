"""All pages and pictures of stored figures, as they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.figure_tables import filled, tables_in
from benchmarks.pages.origins import origins
from benchmarks.pages.pictures import FOLDER, pictures
from benchmarks.pages.quoted import SENTENCES
from benchmarks.pages.sentences import Sentence, renewed
from benchmarks.pages.tables import tables
from benchmarks.results import read_result
from benchmarks.runner.comparing import by_name
from benchmarks.runner.questions import QUESTIONS

PAGES: Final = ("README.md", "benchmarks/*.md", "docs/*.md")


def renewed_files(root: Path, sentences: Sequence[Sentence] = SENTENCES) -> dict[Path, str]:
    """What every page and picture below *root* has to be, by its path, out of the figures that are stored there.

    Raises ValueError for a page with a table that there is not, or without a sentence that it should have.
    """
    results = {path.stem: read_result(path) for path in sorted((root / "benchmarks" / "figures").glob("*.json"))}
    questions = {Path(question.stored).stem: question for question in QUESTIONS}
    stored = {stem: result.figures for stem, result in results.items()}
    of_tables = tables(stored) | origins(results, questions)
    files = {root / FOLDER / name: text for name, text in pictures(stored).items()}
    for path in (path for pattern in PAGES for path in sorted(root.glob(pattern))):
        page, name = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        if unknown := [table for table in tables_in(page) if table not in of_tables]:
            raise ValueError(f"{name} has tables of figures that there are not: {', '.join(unknown)}")
        page = filled(page, {table: of_tables[table] for table in tables_in(page)})
        for sentence in sentences:
            if sentence.page == name:
                named = by_name(stored[sentence.file], questions[sentence.file].keys)
                page = renewed(page, sentence, named)
        files[path] = page
    return files
