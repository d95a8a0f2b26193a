from .protocol import Begun, History, SessionRow, Store, UsageRow
from .sql import SQLStore, open_store

__all__ = ["Begun", "History", "SQLStore", "SessionRow", "Store", "UsageRow", "open_store"]
