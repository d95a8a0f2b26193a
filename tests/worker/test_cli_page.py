"""The page of the command line says what the parser takes."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

from gmi.worker.cli.exit_codes import MEANINGS
from gmi.worker.cli.main import parser

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
TEXT = PAGE.read_text()
SECTIONS = dict(
    re.findall(r"^### `gmi (\w+)`\n(.*?)(?=^##|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
)


def verbs() -> dict[str, argparse.ArgumentParser]:
    [found] = [
        action for action in parser([])._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(found.choices)


def options(known: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a verb, with those of its own verbs."""
    found = dict(known._option_string_actions)
    for action in known._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found.update(inner._option_string_actions)
    return found


def test_the_page_has_every_verb_and_no_other() -> None:
    assert set(SECTIONS) == set(verbs())


def test_every_verb_has_an_example_that_the_parser_takes() -> None:
    for verb, body in SECTIONS.items():
        [example] = re.findall(r"```sh\n(.*?)```", body, flags=re.DOTALL)
        words = shlex.split(example.strip())
        words = words[words.index("gmi") + 1 :]
        words = words[: words.index(">")] if ">" in words else words
        assert parser(words).parse_args(words).verb == verb


def test_every_verb_says_what_its_json_is() -> None:
    for verb, body in SECTIONS.items():
        assert re.search(r"^JSON", body, flags=re.MULTILINE), verb


def test_every_option_in_the_page_exists() -> None:
    for verb, body in SECTIONS.items():
        named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", body))
        named -= {"--output"} if verb == "replay" else set()
        assert named <= set(options(verbs()[verb])), verb


def test_every_option_of_a_verb_of_its_own_is_in_the_page() -> None:
    shared = set(options(verbs()["usage"]))
    for verb, known in verbs().items():
        own = {
            option
            for option, action in options(known).items()
            if action.help != argparse.SUPPRESS and option.startswith("--")
        }
        for option in own - shared:
            assert option in SECTIONS[verb], f"{verb} {option}"


def test_the_page_has_the_exit_codes() -> None:
    shown = dict(re.findall(r"^\| (\d+) \| (.*) \|$", TEXT, flags=re.MULTILINE))
    assert shown == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
