"""Tasks and decisions: the running broker."""
