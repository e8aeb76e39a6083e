"""The broker's side of groups and transactions: who looks after them, and how they are asked."""
