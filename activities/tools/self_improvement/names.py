"""The tools with which an agent changes itself."""

ADAPT_PERSONALITY = "adapt_personality"
MANAGE_SKILLS = "manage_skills"
CREATE_WORKFLOW = "create_workflow"
SELF_EVALUATE = "self_evaluate"
FORGE_TOOL = "forge_tool"
USE_FORGED_TOOL = "use_forged_tool"

SELF_IMPROVEMENT_TOOLS = frozenset(
    {
        ADAPT_PERSONALITY,
        MANAGE_SKILLS,
        CREATE_WORKFLOW,
        SELF_EVALUATE,
        FORGE_TOOL,
        USE_FORGED_TOOL,
    }
)
"""Offered only to sessions whose persona may change itself."""
