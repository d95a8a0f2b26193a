"""The architecture as tests: who imports whom, what stays out of workflows, what is shipped."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["personas", "workflows", "activities", "worker"]
MAX_LINES = 500

ALLOWED_OUTSIDE = {
    "personas": {"pydantic", "pydantic_core", "typing_extensions"},
    "workflows": {"pydantic", "temporalio"},
}
WORKFLOW_TEMPORALIO = {
    "temporalio",
    "temporalio.activity",
    "temporalio.common",
    "temporalio.contrib.workflow_streams",
    "temporalio.exceptions",
    "temporalio.workflow",
}


def modules(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text())


def imports(path: Path, tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Each import as a dotted name from the repository's root, and whether it is relative."""
    package = list(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, False
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.module or "", False
                continue
            base = package[: len(package) - node.level + 1]
            yield ".".join([*base, *(node.module or "").split(".")]).strip("."), True


def outside(folder: str) -> Iterator[tuple[Path, str]]:
    for path, tree in modules(folder):
        for name, relative in imports(path, tree):
            top = name.split(".")[0]
            if not relative and top not in sys.stdlib_module_names:
                yield path, name


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_only_what_stands_left_of_it(folder: str) -> None:
    allowed = ORDER[: ORDER.index(folder) + 1]
    for path, tree in modules(folder):
        for name, relative in imports(path, tree):
            if relative:
                top = name.split(".")[0]
                assert top in allowed, f"{path} imports {name}"


@pytest.mark.parametrize("folder", ORDER)
def test_every_import_of_our_own_is_relative(folder: str) -> None:
    for path, name in outside(folder):
        assert name.split(".")[0] not in {"gmi", *ORDER}, f"{path} imports {name}"


@pytest.mark.parametrize("folder", ["personas", "workflows"])
def test_the_pure_folders_import_few_packages(folder: str) -> None:
    for path, name in outside(folder):
        assert name.split(".")[0] in ALLOWED_OUTSIDE[folder], f"{path} imports {name}"


def test_workflows_use_only_the_workflow_side_of_temporal() -> None:
    for path, name in outside("workflows"):
        if name.startswith("temporalio"):
            assert name in WORKFLOW_TEMPORALIO, f"{path} imports {name}"


NOT_REPLAYED = {
    "os",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "threading",
    "time",
    "tempfile",
}
NOT_REPLAYED_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "urandom", "sleep", "to_thread"}


def test_workflow_code_uses_no_clock_no_randomness_and_no_io() -> None:
    # Sessions run outside the SDK's sandbox; this takes its place.
    for folder in ("personas", "workflows"):
        for path, tree in modules(folder):
            if (folder, path.name) == ("personas", "loader.py"):
                continue  # reads files, and runs in activities only
            for name, _ in imports(path, tree):
                assert name.split(".")[0] not in NOT_REPLAYED, f"{path} imports {name}"
            for node in ast.walk(tree):
                assert not isinstance(node, ast.Global), f"{path} has global state"
                if not isinstance(node, ast.Call):
                    continue
                if isinstance(node.func, ast.Name):
                    assert node.func.id not in ("open", "input"), f"{path} calls {node.func.id}"
                if isinstance(node.func, ast.Attribute) and node.func.attr in NOT_REPLAYED_CALLS:
                    owner = ast.unparse(node.func.value)
                    assert owner == "workflow", f"{path}:{node.lineno} calls {owner}"


def test_only_the_settings_read_the_environment() -> None:
    for folder in ORDER:
        for path, tree in modules(folder):
            if path.name == "settings.py":
                continue
            for node in ast.walk(tree):
                named = isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
                assert not named, f"{path} reads the environment"


def test_importing_the_workflows_loads_no_network_or_database_library() -> None:
    code = (
        "import sys, gmi.workflows\n"
        "loaded = {'httpx', 'numpy', 'sqlalchemy', 'aiosqlite'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "ours = [m for m in sys.modules if m.startswith(('gmi.activities', 'gmi.worker'))]\n"
        "assert not ours, ours\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_no_file_grows_past_its_subject() -> None:
    for folder in (*ORDER, "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            lines = len(path.read_text().splitlines())
            assert lines <= MAX_LINES, f"{path} has {lines} lines; split it by meaning"


def test_the_wheel_lists_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(("gmi", *path.parent.relative_to(ROOT).parts))
        for folder in ORDER
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert listed == found


def test_the_type_checkers_links_lead_to_the_folders() -> None:
    for folder in ORDER:
        assert (ROOT / ".src" / "gmi" / folder).resolve() == (ROOT / folder).resolve()
        assert (ROOT / folder / "py.typed").exists()


@pytest.mark.parametrize("package", ["personas", "workflows", "activities", "worker"])
def test_every_public_name_exists(package: str) -> None:
    module = __import__(f"gmi.{package}", fromlist=["__all__"])
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
