"""Python imports this by itself at its start, if PYTHONPATH leads here."""

import reduction

reduction.apply()
