"""Return a result as JSON, through a converter of your own, or straight to the caller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from model import model_or, show

from toolsearch import tool
from toolsearch.chat import ChatClient, scripted_calls


@dataclass
class Invoice:
    number: int
    due: date
    total: Decimal


DUE, TOTAL = date(2026, 12, 1), Decimal("19.90")


@tool
def invoice(number: int) -> Invoice:
    """Get an invoice."""
    return Invoice(number, DUE, TOTAL)


def as_sentence(value: object) -> str:
    return f"{value.total} euros by {value.due:%d %B}" if isinstance(value, Invoice) else str(value)


@tool(result_converter=as_sentence)
def invoice_in_words(number: int) -> Invoice:
    """Get an invoice, in words."""
    return Invoice(number, DUE, TOTAL)


@tool
def pay(number: int) -> None:
    """Pay an invoice."""


@tool(return_direct=True)
def receipt(number: int) -> str:
    """Get a receipt, for the user to keep as it is."""
    return f"RECEIPT No. {number}: 19.90 EUR, paid"


def main() -> None:
    model = model_or(
        scripted_calls(("invoice", {"number": 7}), ("invoice_in_words", {"number": 7}), ("pay", {"number": 7})),
        "Paid.",
        scripted_calls(("receipt", {"number": 7})),  # no more is asked of the model
        scripted_calls(("receipt", {"number": 7}), ("pay", {"number": 8})),
        "Here is your receipt, and invoice 8 is paid, too.",
    )
    client = ChatClient(model, tools=[invoice, invoice_in_words, pay, receipt])
    show(client.prompt("Pay invoice 7.").call_sync())
    for question in ("Give me the receipt.", "Give me the receipt, and pay invoice 8."):
        response = client.prompt(question).call_sync()
        print(f"{response.finish_reason}: {response.text}")


if __name__ == "__main__":
    main()
