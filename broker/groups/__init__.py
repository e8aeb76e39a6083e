"""Groups of consumers and of others, and the offsets they have committed.  Pure machines."""
