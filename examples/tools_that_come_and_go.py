"""Tools come and go while sessions are open: see what a session then shows, finds and calls.

Needs nothing beyond `pip install .`.
"""

from __future__ import annotations

from toolsearch import Catalog, PassThrough, Session, SessionOptions, Tool, ToolSearch, as_tools, tool


@tool
def print_page(text: str) -> str:
    """Print a page on the printer of this floor."""
    return f"printed {len(text)} characters"


@tool
def send_fax(number: str) -> str:
    """Send a fax."""
    return f"sent to {number}"


def plugin(version: int) -> list[Tool]:
    """What a plugin brings: in its second version with another parameter, and one tool more."""

    @tool(name="translate", description="Translate a text into another language.")
    def translate(text: str, language: str = "en") -> str:
        return f"{text} in {language}"

    @tool(name="translate", description="Translate a text into another language.")
    def translate_formally(text: str, language: str = "en", *, formal: bool = False) -> str:
        return f"{text} in {language}, {'formal' if formal else 'informal'}"

    @tool(name="spell_check", description="Check how the words of a text are spelt.")
    def spell_check(text: str) -> str:
        return f"{text}: no mistakes"

    return as_tools(translate) if version == 1 else as_tools(translate_formally, spell_check)


def look(session: Session, title: str) -> None:
    """Ask for the tools of the next model request."""
    print(f"{title}: {[entry['name'] for entry in session.tools(format='mcp')]}")


def main() -> None:
    options = SessionOptions(pass_through=PassThrough(max_tools=0))  # or so few tools would be shown whole
    with Catalog([print_page, send_fax]) as catalog, ToolSearch(catalog, options=options) as engine:
        catalog.subscribe(
            lambda change: print(
                f"   changed: added {[each.name for each in change.added]}, removed {list(change.removed)}"
            )
        )
        session = engine.session("ada")
        catalog.sync("language plugin", plugin(1))  # all tools of an owner, in one change
        session.search("select:translate,send_fax")
        look(session, "after a search")

        catalog.sync("language plugin", plugin(2))
        look(session, "after an update")
        [shown] = [each.definition for each in session.shown() if each.name == "translate"]
        print("   its parameters:", list(shown.input_schema["properties"]))

        # The provider may have the list in its prompt cache, so it stays; found and run is only what is there.
        catalog.remove("send_fax")
        look(session, "after a removal")
        print("   a search for it:", [each.name for each in session.search("select:send_fax")])
        gone = session.call_sync("send_fax", {"number": "1"})
        print(f"   a call of it: {gone.error_code}, {gone.text}")

        session.compacted()  # earlier messages were dropped, and with them what the provider had cached
        look(session, "in a new list")

        catalog.sync("language plugin", [])
        session.end_turn()
        print("without the plugin:", [each.name for each in engine.search("translate a text")], session.discovered)


if __name__ == "__main__":
    main()
