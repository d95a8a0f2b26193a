from .asking import Asking, Judge, Judged, Parts
from .names import SELF_IMPROVEMENT_TOOLS
from .tools import offered, self_improvement_tools

__all__ = [
    "SELF_IMPROVEMENT_TOOLS",
    "Asking",
    "Judge",
    "Judged",
    "Parts",
    "offered",
    "self_improvement_tools",
]
