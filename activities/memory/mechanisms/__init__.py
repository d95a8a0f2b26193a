"""The mechanisms of the memory, one in each module."""
