"""What becomes of real MCP servers and OpenAPI documents that nobody has prepared? They are installed when it runs.

    python -m benchmarks.wild [--lists servers,documents,report] [--only NAME,NAME] [--place FOLDER] [--json FILE]

For each: its tools, those refused, names that were cut, the tools that each API takes as they are listed and as they
are sent, tokens, definitions that the scan holds, tools that get requests that ship, and seconds until all were listed.
Servers are given made-up keys, so they list their tools and can do nothing else. Nothing they send is kept.

The list "report" is of servers at which nobody looks while mending: it prints counts, and no reason for any of them.
"""
