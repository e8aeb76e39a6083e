"""Faults in a broker for tests: which requests they meet, and what becomes of those."""
