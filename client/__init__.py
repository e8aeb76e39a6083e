"""A small client for our own use: replication, the command line, tests.

One set of code for two worlds.  `tasks.py` lets it run among trio's tasks; `blocking.py` on a plain socket, for
commands that are over before trio would be imported (measured: Python 11 ms, our messages 40, construct 28, trio
another 110).  Start at `client.py`.
"""
