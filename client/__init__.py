"""A small client for our own use: replication, the command line, tests.

One set of code for two worlds.  `tasks.py` lets it run among trio's tasks; `blocking.py` on a plain socket, for commands
that are over before trio is imported (measured: 11 ms for Python, 60 for the codecs of `wire`, 30 for construct, and
another 110 for trio).  Start at `client.py`.
"""
