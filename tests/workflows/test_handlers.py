"""What no handler of the session may do, read from its source."""

from __future__ import annotations

import ast
from pathlib import Path

import gmi.workflows.session as session

WORKFLOWS = Path(session.__file__).parent

Method = ast.AsyncFunctionDef | ast.FunctionDef


def methods() -> dict[str, Method]:
    """The methods of the session and of its lane, as ``Class.method``."""
    found: dict[str, Method] = {}
    for file, name in (("session.py", "GMISession"), ("lane.py", "Lane")):
        for node in ast.parse((WORKFLOWS / file).read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                for item in node.body:
                    if isinstance(item, ast.AsyncFunctionDef | ast.FunctionDef):
                        found[f"{name}.{item.name}"] = item
    return found


def called(name: str, method: Method) -> set[str]:
    """The methods that a method names, on itself and on the lane."""
    owner = name.split(".")[0]
    found = set()
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute):
            target = ast.unparse(node.value)
            if target == "self":
                found.add(f"{owner}.{node.attr}")
            elif target == "self._lane":
                found.add(f"Lane.{node.attr}")
    return found


def continues(tree: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "continue_as_new"
        for node in ast.walk(tree)
    )


def is_handler(method: Method) -> bool:
    marks = {ast.unparse(mark).split("(")[0] for mark in method.decorator_list}
    return bool(marks & {"workflow.update", "workflow.signal", "workflow.query"})


def test_only_the_lane_continues_as_new() -> None:
    found = methods()
    assert [name for name, method in found.items() if continues(method)] == ["Lane._roll"]
    for path in WORKFLOWS.glob("*.py"):
        if path.name != "lane.py":
            assert not continues(ast.parse(path.read_text())), path


def test_no_handler_reaches_a_continuation() -> None:
    found = methods()
    handlers = [name for name, method in found.items() if is_handler(method)]
    assert len(handlers) > 15
    reached, waiting = set(handlers), list(handlers)
    while waiting:
        name = waiting.pop()
        for other in called(name, found[name]) & found.keys() - reached:
            reached.add(other)
            waiting.append(other)
    assert "Lane.hold" in reached
    assert not reached & {"GMISession.run", "Lane.serve", "Lane._roll", "Lane.close"}
