"""Memories in the store: traces, their vectors and links, and what a turn recalled."""
