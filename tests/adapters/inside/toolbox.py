"""500 tools of an office, and what two users want of them: three things each, found by a search and then called."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VERBS = """
    approve archive assign audit cancel clone compress count decline describe
    encrypt forward inspect label merge print rename restore schedule translate""".split()  # noqa: SIM905  20 words
THINGS = """
    invoice receipt voucher refund customer lead campaign chapter footnote template driver route trailer orchard
    greenhouse payslip contract photo video podcast firewall mailbox exam parcel barcode""".split()  # noqa: SIM905  25

LOST = "lost"  # an id that makes each tool fail


@dataclass(frozen=True)
class Wish:
    """What a user says, what the model then searches for, and what it calls."""

    said: str
    query: str
    name: str
    id: str = "7"


ANN = (
    Wish("Rename the invoice of March.", "rename an invoice", "rename_invoice"),
    Wish("Schedule the exam.", "schedule an exam", "schedule_exam", LOST),
    Wish("Compress the video of the party.", "compress a video", "compress_video"),
)
BOB = (
    Wish("Merge the two leads.", "merge leads", "merge_lead"),
    Wish("Print the barcode of the box.", "print a barcode", "print_barcode"),
    Wish("Translate the footnote.", "translate a footnote", "translate_footnote"),
)
WISHES = {"ann": ANN, "bob": BOB}


def tools() -> list[Callable[..., Any]]:
    return [_tool(verb, thing) for verb in VERBS for thing in THINGS]


def _tool(verb: str, thing: str) -> Callable[..., Any]:
    def run(id: str, note: str = "") -> str:  # noqa: A002  as such tools call it
        if id == LOST:
            raise ValueError(f"there is no {thing} {id!r}")
        return f"{verb}_{thing} has run for {id}"

    run.__name__ = f"{verb}_{thing}"
    run.__doc__ = f"{verb.title()} one {thing}, and say what has become of it."
    return run
