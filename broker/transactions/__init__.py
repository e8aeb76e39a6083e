"""Transactions: who may write under which id, and how what they wrote ends.  Pure machines."""
