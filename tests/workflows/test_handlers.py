"""What no handler of the session may do, read from its source."""

from __future__ import annotations

import ast
from pathlib import Path

import gmi.workflows.session as session

WORKFLOWS = Path(session.__file__).parent


def calls_of(tree: ast.AST) -> set[str]:
    """Names of everything that is called below a node."""
    return {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }


def methods() -> dict[str, ast.AsyncFunctionDef | ast.FunctionDef]:
    tree = ast.parse((WORKFLOWS / "session.py").read_text())
    [owner] = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "GMISession"]
    return {n.name: n for n in owner.body if isinstance(n, ast.AsyncFunctionDef | ast.FunctionDef)}


def is_handler(method: ast.AsyncFunctionDef | ast.FunctionDef) -> bool:
    marks = {ast.unparse(mark).split("(")[0] for mark in method.decorator_list}
    return bool(marks & {"workflow.update", "workflow.signal", "workflow.query"})


def test_only_the_run_itself_continues_as_new() -> None:
    found = methods()
    assert [name for name, m in found.items() if "continue_as_new" in calls_of(m)] == ["_roll"]
    for path in WORKFLOWS.glob("*.py"):
        if path.name != "session.py":
            assert "continue_as_new" not in calls_of(ast.parse(path.read_text())), path


def test_no_handler_reaches_a_continuation() -> None:
    found = methods()
    handlers = [name for name, method in found.items() if is_handler(method)]
    assert len(handlers) > 15
    reached, waiting = set(handlers), list(handlers)
    while waiting:
        for name in calls_of(found[waiting.pop()]) & found.keys() - reached:
            reached.add(name)
            waiting.append(name)
    assert not reached & {"run", "_serve", "_roll", "_close", "_release"}
