"""What the broker answers, one file per API; the same names as in `wire/apis`."""
