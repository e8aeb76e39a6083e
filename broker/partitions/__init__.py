"""What this broker stores and leads: partitions, their upkeep, and the sessions of those who read them."""
