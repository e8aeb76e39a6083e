"""What a pure machine may ask for, and what runs it."""
