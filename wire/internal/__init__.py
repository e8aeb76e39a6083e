"""The records that a broker keeps in its own topics, and those that clients send through it."""
