"""A system with less than POSIX, made of this one: what `make test-reduced` runs in.

`sitecustomize.py`, found through PYTHONPATH, applies it to every Python that a test starts as well."""
