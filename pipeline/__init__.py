"""Topics as tables, alerts and repaired topics: Spark's Structured Streaming, described by a TOML file.

`model.py` says what a file may hold, `run.py` runs it.  PySpark is imported where it is used, never at the head of a
file: reading a file, and redriving dead letters, work without it.
"""
