"""Who speaks: personas, and how a persona becomes a prompt."""

from .budget import LeftOut, estimate_tokens, message_tokens
from .builtin import BUILT_IN_PERSONAS, DEFAULT_PERSONA_ID, get_built_in_persona
from .errors import GMIError
from .history import Trimmed, sanitize, trim_history
from .issues import Issue, SetReport, ValidationReport
from .loader import PersonaCatalog, PersonaLoader, load_catalog, load_persona
from .options import CompletionOptions
from .overlays import (
    Overlaid,
    OverlayContext,
    OverlayEffect,
    OverlayPatch,
    OverlayRule,
    apply_overlays,
    overlay_effect,
)
from .parts import FallbackHop
from .personality import personality_pairs, personality_section
from .prompt import AssembledPrompt, PromptContext, Section, assemble
from .remarks import remarks
from .schema import Persona, check_access
from .strict import StrictConfig, StrictResult, classify_strict
from .trace_limits import TraceLimits, trace_limits
from .traits import HEXACO
from .validation import RESERVED_IDS, validate_persona, validate_personas

__all__ = [
    "BUILT_IN_PERSONAS",
    "DEFAULT_PERSONA_ID",
    "HEXACO",
    "RESERVED_IDS",
    "AssembledPrompt",
    "CompletionOptions",
    "FallbackHop",
    "GMIError",
    "Issue",
    "LeftOut",
    "Overlaid",
    "OverlayContext",
    "OverlayEffect",
    "OverlayPatch",
    "OverlayRule",
    "Persona",
    "PersonaCatalog",
    "PersonaLoader",
    "PromptContext",
    "Section",
    "SetReport",
    "StrictConfig",
    "StrictResult",
    "TraceLimits",
    "Trimmed",
    "ValidationReport",
    "apply_overlays",
    "assemble",
    "check_access",
    "classify_strict",
    "estimate_tokens",
    "get_built_in_persona",
    "load_catalog",
    "load_persona",
    "message_tokens",
    "overlay_effect",
    "personality_pairs",
    "personality_section",
    "remarks",
    "sanitize",
    "trace_limits",
    "trim_history",
    "validate_persona",
    "validate_personas",
]
