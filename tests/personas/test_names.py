import inspect
from types import ModuleType

import gmi.personas


def test_every_public_name_is_listed_once_and_exists() -> None:
    listed = gmi.personas.__all__
    assert len(listed) == len(set(listed))
    assert all(hasattr(gmi.personas, name) for name in listed)


def test_every_name_that_the_package_imports_is_listed() -> None:
    imported = {
        name
        for name, value in inspect.getmembers(gmi.personas)
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert imported == set(gmi.personas.__all__)


def test_every_public_class_and_function_says_what_it_promises() -> None:
    silent = [
        name
        for name in gmi.personas.__all__
        if callable(getattr(gmi.personas, name)) and not inspect.getdoc(getattr(gmi.personas, name))
    ]
    assert silent == []
