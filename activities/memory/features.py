"""What in a text calls for attention, found by words.

The lists are a heuristic for English: cheap, the same on every machine, and wrong now and then. A
text in another language has no features, which costs it some strength and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .ranges import within

NEUTRAL_RELEVANCE = 0.5


@dataclass(frozen=True, slots=True)
class Features:
    """What a text holds that is worth attention.

    Attributes:
        novelty: Something new or surprising.
        procedure: Steps to take.
        emotion: A feeling.
        social: Other people.
        cooperation: Doing something together.
        ethics: Right and wrong.
        contradiction: Something said before is taken back or denied.
        topic_relevance: How close to the subject at hand, in [0, 1].
    """

    novelty: bool = False
    procedure: bool = False
    emotion: bool = False
    social: bool = False
    cooperation: bool = False
    ethics: bool = False
    contradiction: bool = False
    topic_relevance: float = NEUTRAL_RELEVANCE


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(patterns) + r")\b", re.IGNORECASE)


_NOVELTY = _any_of(
    r"new(?:ly|est)?",
    r"novel(?:ty)?",
    r"first time",
    r"never (?:been|before|done|had|heard|known|met|read|seen|thought|tried)",
    r"discover(?:y|ed|ing|ies|s)?",
    r"surpris(?:e|ed|es|ing|ingly)",
    r"unexpected(?:ly)?",
    r"unusual(?:ly)?",
    r"strange(?:ly)?",
    r"unprecedented",
    r"curious(?:ly)?",
    r"breakthrough",
    r"innovat(?:e|ion|ive)",
    r"invent(?:ed|ion)",
    r"unique(?:ly)?",
)
_PROCEDURE = _any_of(
    r"steps?[ -]*\d+",
    r"step by step",
    r"how to",
    r"first(?:ly)?,? .{1,80}? (?:then|next|second(?:ly)?)",
    r"(?:first(?:ly)?|then|finally)(?=,)",
    r"instructions?",
    r"procedures?",
    r"process(?:es)?",
    r"recipes?",
    r"tutorials?",
    r"workflows?",
    r"algorithms?",
    r"methods?",
    r"guide(?:s|lines?)?",
    r"configur(?:e|ing|ation)",
    r"install(?:ing|ation)?",
    r"set up",
)
_NUMBERED_LINE = re.compile(r"^\s*\d+[.)]\s+\S", re.MULTILINE)
_EMOTION = _any_of(
    r"happ(?:y|ier|iest|ily|iness)",
    r"sad(?:der|ly|ness)?",
    r"ang(?:ry|er|rily)",
    r"afraid",
    r"scared?",
    r"fear(?:s|ful)?",
    r"lov(?:e|ed|es|ing|ely)",
    r"hat(?:e|ed|es|ing|red)",
    r"joy(?:ful|ous)?",
    r"delight(?:ed|ful)?",
    r"excit(?:ed|ing|ement)",
    r"thrilled",
    r"proud",
    r"ashamed",
    r"guilty",
    r"lonely",
    r"anxi(?:ous|ety)",
    r"worr(?:y|ied|ies|ying)",
    r"nervous",
    r"stress(?:ed|ful)?",
    r"upset",
    r"furious",
    r"frustrat(?:ed|ing|ion)",
    r"disappoint(?:ed|ing|ment)",
    r"depress(?:ed|ing|ion)",
    r"miserable",
    r"grie(?:f|ve|ving)",
    r"cr(?:y|ied|ying)",
    r"terrible",
    r"horrible",
    r"awful",
    r"amazing",
    r"wonderful",
    r"fantastic",
    r"wow",
    r"thank(?:s|ful)?(?: you)?",
    r"grateful",
    r"gratitude",
    r"jealous(?:y)?",
    r"disgust(?:ed|ing)?",
    r"hop(?:e|ing|eful)",
    r"feel(?:s|ings?)?",
    r"felt",
    r"sorry",
)
_EXCLAIMED = re.compile(r"!{2,}")
# Faces and gestures, hearts, and a few more that people send to show what they feel.
_EMOJI = re.compile(
    "[\U0001f600-\U0001f64f\U0001f910-\U0001f92f\U0001f970-\U0001f97a"
    "\u2639\u263a\u2764\u2665\U0001f493-\U0001f49f\U0001f44d\U0001f44e\U0001f389]"
)
_OTHERS = r"(?:s?he|him|hers?|his|they|them|theirs?)"
_TOLD = r"(?:said|told|asked)"
_IN_SENTENCE = r"[^.!?\n]{1,60}"
_SOCIAL = _any_of(
    # A pronoun alone may be about anything.
    rf"{_OTHERS}\b{_IN_SENTENCE}\b{_TOLD}",
    rf"{_TOLD}\b{_IN_SENTENCE}\b{_OTHERS}",
    r"call me",
    r"let(?: us|'?s) discuss",
    r"friend(?:s|ship)?",
    r"famil(?:y|ies)",
    r"teams?",
    r"colleagues?",
    r"co-?workers?",
    r"neighbou?rs?",
    r"partner",
    r"husband",
    r"wife",
    r"mother",
    r"father",
    r"mom",
    r"mum",
    r"dad",
    r"parents?",
    r"sisters?",
    r"brothers?",
    r"sons?",
    r"daughters?",
    r"child(?:ren)?",
    r"boss",
    r"manager",
    r"meetings?",
    r"part(?:y|ies)",
    r"wedding",
    r"people",
    r"everyone",
    r"somebody",
    r"someone",
    r"community",
    r"relationships?",
    r"social(?:ly)?",
)
_COOPERATION = _any_of(
    r"together",
    r"cooperat(?:e|ed|ing|ion|ive)",
    r"collaborat(?:e|ed|ing|ion|ive)",
    r"help(?:ed|ful|ing|s)?",
    r"support(?:ed|ing|ive|s)?",
    r"shar(?:e|ed|es|ing)",
    r"agree(?:d|ment|s)?",
    r"compromis(?:e|ed|ing)",
    r"team ?work",
    r"assist(?:ed|ance|ing)?",
    r"join(?:ed|ing)? (?:forces|me|us)",
    r"let'?s",
)
_ETHICS = _any_of(
    r"(?:un)?fair(?:ly|ness)?",
    r"(?:un)?just(?:ice)?",
    r"(?:un)?ethic(?:al|ally|s)",
    r"(?:im)?moral(?:ly|ity|s)?",
    r"(?:dis)?honest(?:ly|y)?",
    r"right (?:and|or) wrong",
    r"(?:the )?right thing",
    r"wrong(?:ed|ful)?",
    r"l(?:ied|ies|ying)",
    r"cheat(?:ed|ing|s)?",
    r"st(?:eal|eals|ealing|ole|olen)",
    r"betray(?:al|ed)?",
    r"promis(?:e|ed|es)",
    r"integrity",
    r"responsib(?:le|ility)",
    r"principles?",
    r"trust(?:ed|worthy)?",
    r"privacy",
    r"consent",
    r"transparency",
    r"corrupt(?:ion)?",
)
_DENIED = r"(?:not|no|never|nothing|none|cannot|wrong|\w+n't|(?:is|was|are|do|does|did|ca|wo)nt)"
_HOWEVER = r"(?:actually|however)"
_CONTRADICTION = _any_of(
    # They contradict only where something is denied beside them.
    rf"{_HOWEVER}\b{_IN_SENTENCE}\b{_DENIED}",
    rf"{_DENIED}\b{_IN_SENTENCE}\b{_HOWEVER}",
    r"contradict(?:s|ed|ion|ory)?",
    r"in ?consistent",
    r"on the contrary",
    r"contrary to",
    r"that'?s (?:not (?:right|true|correct|what)|wrong|incorrect|false)",
    r"(?:not|isn'?t|wasn'?t) (?:true|correct)",
    r"incorrect",
    r"mistake(?:n|s)?",
    r"corrected",
    r"in fact",
    r"i (?:take (?:it|that) back|changed my mind|was wrong)",
    r"you (?:said|told me) (?:before|earlier|that)",
    r"no longer",
    r"not any ?more",
    r"disagree(?:d|s)?",
    r"instead of",
)
_REFUSED = re.compile(r"(?:^|[.!?] )\s*no,", re.IGNORECASE | re.MULTILINE)
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'"})


def attention_features(text: str, topic_relevance: float = NEUTRAL_RELEVANCE) -> Features:
    """What in the text calls for attention.

    Args:
        text: Any text; an empty one has no features.
        topic_relevance: How close it is to the subject, when somebody knows; in [0, 1].

    Raises:
        ValidationError: The relevance is no finite number.
    """
    text = text.translate(_APOSTROPHES)
    return Features(
        novelty=_NOVELTY.search(text) is not None,
        procedure=bool(_PROCEDURE.search(text) or _NUMBERED_LINE.search(text)),
        emotion=any(sign.search(text) for sign in (_EMOTION, _EXCLAIMED, _EMOJI)),
        social=_SOCIAL.search(text) is not None,
        cooperation=_COOPERATION.search(text) is not None,
        ethics=_ETHICS.search(text) is not None,
        contradiction=bool(_CONTRADICTION.search(text) or _REFUSED.search(text)),
        topic_relevance=within("topic_relevance", topic_relevance, 0.0, 1.0),
    )
