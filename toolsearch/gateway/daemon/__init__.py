"""One background process for all clients over stdio of a configuration; each client starts only a small program.

    address    the socket of the background process, and who may reach it
    connector  finds the background process, or starts it
    relay      the small program: carries a client's lines to the background process, and outlives it
    session    the part of a client's session that the small program repeats to the next process
    main       the program of the background process
    process    the background process: one gateway, which serves each connection as a client of its own

Each client runs the first four, so they import nothing heavy.
"""
