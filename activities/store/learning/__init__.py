"""What agents changed about themselves, in the store."""
