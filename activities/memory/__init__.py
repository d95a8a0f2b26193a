"""Long-term memory: what is encoded, how it fades, how it is found again."""
