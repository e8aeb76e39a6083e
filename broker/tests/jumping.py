"""Settings for a whole broker under trio's MockClock.

Checkpoints are written in a thread, and the clock jumps while a thread works: those tests do without.
"""

NO_THREADS = {"replica.high.watermark.checkpoint.interval.ms": str(10**12)}
