from .protocol import Begun, Closing, History, SessionRow, Store, UsageRow
from .sql import SQLStore, open_store

__all__ = [
    "Begun",
    "Closing",
    "History",
    "SQLStore",
    "SessionRow",
    "Store",
    "UsageRow",
    "open_store",
]
