from .protocol import Begun, Closing, History, SessionRow, Shown, Store, UsageRow
from .sql import SQLStore, open_store

__all__ = [
    "Begun",
    "Closing",
    "History",
    "SQLStore",
    "SessionRow",
    "Shown",
    "Store",
    "UsageRow",
    "open_store",
]
