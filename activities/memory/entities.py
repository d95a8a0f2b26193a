"""What a text names, found without a model.

Names are words that begin with a capital letter where a sentence does not ask for one, alone or in
a row ("Ada Lovelace", "University of Oslo"); also handles, dates and years, and short quoted
titles. This is a heuristic for languages that write only names with a capital. It finds too much
in German and nothing in scripts without capitals or in a text of small letters alone. A single
word that begins a sentence counts as a name before a possessive or a verb of people ("Rex wants"),
so that "Rex barks." is missed; "2000 euros" is taken for a year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MAX_ENTITIES = 12
MAX_TEXT = 8000
"""Characters of a text that are looked at."""
MAX_CHARS = 60
"""Longer finds are no names."""

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WORD = re.compile(r"[^\W_](?:\w|[&.'’-](?=\w))*")
_HANDLE = re.compile(r"(?<![\w@.])[@#][A-Za-z0-9_](?:[\w.-]{0,38}\w)?")
_DATE = re.compile(
    rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|{_MONTH} \d{{4}})\b"
)
_YEAR = re.compile(r"(?<![\w.,-])(?:1[89]|20)\d{2}(?!\w|[.,:-]\d|%)")
_TITLE = re.compile(r"[\"“„«]([^\W\d_a-z][^\"“”„«»\n]{1,58}[^\W_])[\"”“»]")
_START = re.compile(r"(?:^|[.!?…:;\n•])\s*(?:[-*>#]+|\d+[.)])?\s*[\"“„«'’(\[]*$")
_POSSESSIVE = re.compile(r"['’]s$")
_GAPS = (" ", "  ", " & ")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_JOINERS = _words("of de la le du van von der den di da del al bin ibn")
_ARTICLES = _words("the la der den")
_NOT_NAMES = _words(
    # Capitalised wherever they stand, or so often first that they name nothing.
    "i i'm i'll i've i'd ok okay mr mrs ms dr prof sir madam monday tuesday wednesday thursday "
    "friday saturday sunday january february march april may june july august september october "
    "november december mon tue wed thu fri sat sun the a an and or but so if then when while who "
    "what where which why how this that these those there here it its it's he she they we you my "
    "your his her our their is are was were do does did can could will would should might must "
    "have has had let let's please thanks thank hello hi hey yes no not never now today tomorrow "
    "tonight yesterday well just also maybe perhaps sure oh wow ah hmm great good nice sorry as at "
    "by for from in into of off on out over to up with after before because since until although "
    "though some any every each all both many much more most other another such only even still "
    "yet really actually however therefore dear am pm tv someone everyone nobody everybody nothing "
    "something everything people last next first that's there's what's"
)
_FIRST_WORDS = _words(
    # Verbs that a sentence begins with, directly before a name.
    "ask call tell buy meet visit remind email read watch see add give send remember write book "
    "show love loved went met got going looking bring take find check invite pick help thank say "
    "saw talked spoke told called asked visited congratulations happy"
)
_PEOPLE_DO = _words(
    "said says told tells thinks thought loves loved likes liked wants wanted lives lived moved "
    "went called works worked asked believes knows knew met married visited has had was is will "
    "and"
)


def entities_of(text: str) -> tuple[str, ...]:
    """What a text names: in lower case, each once, in the order of the text, at most 12.

    Args:
        text: Any text; only its first 8,000 characters are looked at.
    """
    text = text[:MAX_TEXT]
    found: list[tuple[int, int, str]] = []
    for start, end, name in (*_titles(text), *_written_so(text), *_names(text)):
        # What lies inside another find says nothing of its own: a date's year, a title's words.
        if not any(start < other_end and end > other for other, other_end, _ in found):
            found.append((start, end, name))
    names = (" ".join(name.casefold().split()) for _, _, name in sorted(found))
    return tuple(dict.fromkeys(n for n in names if 1 < len(n) <= MAX_CHARS))[:MAX_ENTITIES]


def _titles(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _TITLE.finditer(text):
        # More words are what somebody said.
        if len(match.group(1).split()) <= 8:
            yield match.start(), match.end(), match.group(1)


def _written_so(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_HANDLE, _DATE, _YEAR):
        for match in pattern.finditer(text):
            yield match.start(), match.end(), match.group()


def _names(text: str) -> Iterator[tuple[int, int, str]]:
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        if not words[at].group()[0].isupper():
            at += 1
            continue
        end = _end_of_run(text, words, at)
        run = words[at:end]
        after = words[end].group() if end < len(words) else ""
        begins = _START.search(text[max(0, run[0].start() - 80) : run[0].start()]) is not None
        kept = _trimmed(run, begins)
        # Where a word was taken off, the rest no longer begins the sentence.
        first = begins and bool(kept) and kept[0] is run[0]
        if kept and (not first or len(words) == len(kept) or _is_sure(kept, after)):
            name = _POSSESSIVE.sub("", text[kept[0].start() : kept[-1].end()])
            yield kept[0].start(), kept[-1].end(), name
        at = end


def _end_of_run(text: str, words: Sequence[re.Match[str]], first: int) -> int:
    """The end of the capitalised words in a row; "of the" may stand between two of them."""
    end = first + 1
    while end < len(words) and not _POSSESSIVE.search(words[end - 1].group()):
        following = end
        if words[following].group() in _JOINERS:
            following += 1
            if following < len(words) and words[following].group() in _ARTICLES:
                following += 1
        together = following < len(words) and all(
            text[words[i - 1].end() : words[i].start()] in _GAPS for i in range(end, following + 1)
        )
        if not together or not words[following].group()[0].isupper():
            break
        end = following + 1
    return end


def _trimmed(run: Sequence[re.Match[str]], begins: bool) -> Sequence[re.Match[str]]:
    """The run without the words at its ends that name nothing."""
    while run and _plain(run[0]) in (_NOT_NAMES | _FIRST_WORDS if begins else _NOT_NAMES):
        run = run[1:]
    while run and _plain(run[-1]) in _NOT_NAMES:
        run = run[:-1]
    return run


def _is_sure(run: Sequence[re.Match[str]], after: str) -> bool:
    """Whether words that begin a sentence are a name all the same."""
    first = run[0].group()
    return (
        len(run) > 1
        or after in _PEOPLE_DO
        or _POSSESSIVE.search(first) is not None
        or any(sign.isupper() for sign in first[1:])
    )


def _plain(word: re.Match[str]) -> str:
    return word.group().casefold().replace("’", "'")
