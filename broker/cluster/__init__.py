"""What all brokers agree on: the store that keeps it, the image each broker has of it, and who may change it."""
