"""The command line: ``gmi``, or ``python -m gmi.worker``."""

from .main import main, run

__all__ = ["main", "run"]
