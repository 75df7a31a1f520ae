"""What happens in the 30 turns: what the user says, what the model does in each of its replies, what befalls the tools.

There are 12 discoveries. A tool is used in the turn that finds it, in the next one, and long after, when it has been
evicted; one is called by its name without a search; one's server goes away, one's definition changes; the process is
restarted, and the user is away for longer than any prompt cache lasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.kit.conversation.tools import AWAY, SERVERS

Event: TypeAlias = Literal["", "server goes away", "definition changes", "restart", "pause", "skills go away"]


@dataclass(frozen=True)
class Find:
    query: str


@dataclass(frozen=True)
class Use:
    name: str


@dataclass(frozen=True)
class Read:
    """The model reads a skill, or one of its files."""

    name: str
    file: str = ""


Act: TypeAlias = Find | Use | Read


@dataclass(frozen=True)
class Turn:
    """*replies* of the model, each with what it calls; then it answers. *event* comes before the turn."""

    said: str
    replies: tuple[tuple[Act, ...], ...] = ()
    event: Event = ""


NOTHING = "zodiac horoscope"  # no tool serves it
CHANGED = "translate_footnote"
LOST = f"print_{SERVERS[AWAY].split()[3]}"  # of the server that goes away: its second use fails


def _find_and_use(*names: str) -> tuple[tuple[Act, ...], ...]:
    return tuple(Find(name.replace("_", " ")) for name in names), tuple(map(Use, names))


def _use(*names: str) -> tuple[tuple[Act, ...], ...]:
    return (tuple(map(Use, names)),)


TURNS = (
    Turn("Please rename the invoice of March.", _find_and_use("rename_invoice")),
    Turn("Schedule the exam for Monday.", _find_and_use("schedule_exam")),
    Turn("Thank you. What is your name?"),
    Turn("Compress the video of the party.", _find_and_use("compress_video")),
    Turn("And rename the invoice of April.", _use("rename_invoice")),
    Turn("Lock the mailbox and audit the firewall.", _find_and_use("lock_mailbox", "audit_firewall")),
    Turn("How long will that take?"),
    Turn("Forward the payslip to Ann.", _find_and_use("forward_payslip")),
    Turn("Print the barcode of the red box.", _find_and_use(LOST)),
    Turn("Move the exam to Tuesday.", _use("schedule_exam")),
    Turn("Merge the two leads of Bob.", _find_and_use("merge_lead")),
    Turn("Restore the old timetable.", _use("restore_timetable")),  # without a search
    Turn("Good. And you?"),
    Turn("Inspect the trailer.", _find_and_use("inspect_trailer")),
    Turn("Print the barcode of the blue box.", _use(LOST), event="server goes away"),
    Turn("Rename the invoice of May, then.", _use("rename_invoice")),
    Turn("What can be done about the hedge?", (_find_and_use("repair_hedge")[0],)),
    Turn("Repair it.", _use("repair_hedge")),
    Turn("Compress the other video.", _use("compress_video"), event="restart"),
    Turn("Translate the footnote.", _find_and_use(CHANGED)),
    Turn("Translate the next one.", _use(CHANGED), event="definition changes"),
    Turn("And one more.", _use(CHANGED)),
    Turn("I am back. Lock the other mailbox.", _use("lock_mailbox"), event="pause"),
    Turn("Publish the podcast.", _find_and_use("publish_podcast")),
    Turn("It sounds fine."),
    Turn("Forward my payslip, and merge these leads.", _use("forward_payslip", "merge_lead")),
    Turn("Is there anything for horoscopes?", ((Find(NOTHING),),)),
    Turn("Then publish the other podcast.", _use("publish_podcast")),
    Turn("And rename the invoice of June.", _use("rename_invoice")),
    Turn("That is all."),
)


def expected_searches(turns: Sequence[Turn]) -> int:
    return sum(isinstance(act, Find) for turn in turns for reply in turn.replies for act in reply)


def expected_runs(turns: Sequence[Turn]) -> list[str]:
    """The tools that run, in order: all that are used, but for the one whose server has gone."""
    used = [act.name for turn in turns for reply in turn.replies for act in reply if isinstance(act, Use)]
    lost = [number for number, name in enumerate(used) if name == LOST][1:]
    return [name for number, name in enumerate(used) if number not in lost]
