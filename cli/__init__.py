"""The `trilogue` command."""
