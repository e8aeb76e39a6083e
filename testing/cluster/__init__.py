"""Several brokers in one loop, on one store in memory: what tests do to them, and how they are asked."""
