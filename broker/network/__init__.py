"""Bytes to requests and answers to bytes: listeners, connections, and the two ways of serving them."""
