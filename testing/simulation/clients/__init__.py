"""Clients of a simulated cluster, each right in the way a good client is: what they ask for again, they ask for in the
same words."""
