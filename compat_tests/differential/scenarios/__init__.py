"""What is asked, one file per API; the same names as in `wire/apis`."""
