from .layer import LearnerContext, LearnerSession, LearningLayer, Turn, create_learning_layer
from .learning import Learning
from .pieces import prompt_parts, with_params
from .store import LearningStore

__all__ = [
    "LearnerContext",
    "LearnerSession",
    "Learning",
    "LearningLayer",
    "LearningStore",
    "Turn",
    "create_learning_layer",
    "prompt_parts",
    "with_params",
]
