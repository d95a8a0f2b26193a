"""What somebody says who is confused."""

from __future__ import annotations

import re

CONFUSION_PHRASES: tuple[str, ...] = (
    "confused",
    "don't understand",
    "dont understand",
    "do not understand",
    "unclear",
    "what do you mean",
    "explain",
    "clarify",
    "huh",
    "??",
    "doesn't make sense",
    "doesnt make sense",
    "does not make sense",
    "makes no sense",
    "not sure",
)
"""The phrases that are looked for, matched as whole words whatever the case."""

# Also the word of a plain request: it tells of confusion only beside something else that does.
_REQUEST = "explain"
_ONCE_MORE = "again"
# "I am not confused" is the opposite.
_DENIED = frozenset({"confused", "unclear"})
_DENIALS = frozenset({"not", "never", "no", "longer", "without", "isn't", "aren't", "wasn't"})
_DENIAL_REACH = 2

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'"))
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_BREAK = re.compile(r"[.,;:!?…\n()\"“”]+")
_MARKS = re.compile(r"\?\s?\?")


def confusion_phrases(text: str) -> tuple[str, ...]:
    """The phrases of confusion in an English text, in the order of `CONFUSION_PHRASES`.

    A request to explain something is none by itself. It counts beside another phrase and where
    something is asked for once more ("explain that again"). "Not confused" is none either. A
    typographic apostrophe counts as a plain one.
    """
    parts = [_WORD.findall(part) for part in _BREAK.split(text.lower().translate(_APOSTROPHES))]
    found = [
        phrase
        for phrase in CONFUSION_PHRASES
        if (_MARKS.search(text) if phrase == "??" else _says(parts, phrase))
    ]
    if found == [_REQUEST] and not any(_ONCE_MORE in words for words in parts):
        return ()
    return tuple(found)


def _says(parts: list[list[str]], phrase: str) -> bool:
    wanted = phrase.split()
    size = len(wanted)
    for words in parts:
        for start in range(len(words) - size + 1):
            if words[start : start + size] != wanted:
                continue
            before = words[max(0, start - _DENIAL_REACH) : start]
            if phrase not in _DENIED or not _DENIALS.intersection(before):
                return True
    return False
