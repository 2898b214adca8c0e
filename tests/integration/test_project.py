"""What contributors find: each name of a check exists, and the workflow tries every Python that is declared."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CI = ROOT / ".github" / "workflows" / "ci.yml"


def checks() -> set[str]:
    """The names of the checks that `python3 tests --only=` takes."""
    for node in ast.parse((ROOT / "tests" / "__main__.py").read_text("utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and ast.unparse(node.targets[0]) == "CHECKS"
        ):
            return {ast.literal_eval(key) for key in node.value.keys if key}
    raise AssertionError


@pytest.mark.parametrize(
    "file", [CI, ROOT / ".pre-commit-config.yaml", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "conf.py"]
)
def test_named_checks_exist(file: Path) -> None:
    named = re.findall(r"--only=([\w,]+)", file.read_text("utf-8"))
    assert named
    assert {name for names in named for name in names.split(",")} <= checks()


def test_checks_are_nox_sessions_and_documented() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    assert sessions == checks()
    explained = re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert set(explained) == checks()


def test_command_for_published_apps_starts() -> None:
    command = [sys.executable, "-m", "tests.real_apps", "no-such-app"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition(";")[0]) == (2, "unknown: no-such-app"), done.stderr


def test_workflow_runs_every_check_on_every_python() -> None:
    text = CI.read_text("utf-8")
    run = {name for names in re.findall(r"--only=([\w,]+)", text) for name in names.split(",")}
    assert run == checks() - {"benchmarks"}
    declared = [
        classifier.rpartition(" ")[2] for classifier in PROJECT["project"]["classifiers"] if ":: 3." in classifier
    ]
    (matrix,) = re.findall(r"python: \[(.*)\]", text)
    assert [version.strip(' "') for version in matrix.split(",")] == declared


def test_architecture_names_every_module() -> None:
    """A new, moved or removed module is changed in the tree of docs/architecture.md, too."""
    tree = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("```\n")[2].partition("```")[0]
    named, package = set(), ""
    for line in tree.splitlines():
        name, _, purpose = line.strip().partition(" ")
        assert purpose.strip(), line
        if name.endswith("/") and not line.startswith(" "):
            package = name
        elif name.endswith("/"):
            named |= {f"{package}{name}{module}" for module in purpose.strip().split(", ")}
        else:
            named.add(f"{package}{name}" if line.startswith(" ") else name)
    folder = ROOT / "sitemap_middleware"
    files = {file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.py")}
    assert named == {name for name in files if not name.endswith(("__init__", "__main__"))}


def test_architecture_has_the_order_of_the_layers() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("```\n")[2].partition("```")[0]
    shown = [line.split()[0].rstrip("/") for line in tree.splitlines() if not line.startswith(" ")]
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (layers,) = [item["layers"] for item in contracts if item.get("containers") == ["sitemap_middleware"]]
    depth = {module: number for number, layer in enumerate(layers) for module in layer.split(" | ")}
    assert shown == sorted(shown, key=depth.__getitem__)


def test_paths_in_contributing_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = re.findall(r"\b(?:sitemap_middleware|tests|docs|examples)/[\w/.-]*\w|`(?:\w+\.md|\w+\.toml)`", text)
    assert len(paths) > 8
    assert [path for path in paths if not (ROOT / path.strip("`")).exists()] == []


def test_each_private_name_of_a_module_is_used() -> None:
    """Linters report unused imports and variables of functions, and not what stands at the top of a module."""
    unused = []
    for file in sorted((ROOT / "sitemap_middleware").rglob("*.py")):
        text = file.read_text("utf-8")
        for statement in ast.parse(text).body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            names += [statement.name] if isinstance(statement, ast.FunctionDef | ast.ClassDef) else []
            private = [name for name in names if name.startswith("_") and not name.startswith("__")]
            unused += [f"{file.name}: {name}" for name in private if len(re.findall(rf"\b{name}\b", text)) == 1]
    assert unused == []


def test_named_tuples_that_are_made_without_their_class_have_all_fields() -> None:
    """`tuple.__new__` checks nothing. Tuples with a starred item are compared by the tests of their modules."""
    literal = 0
    for file in sorted((ROOT / "sitemap_middleware").rglob("*.py")):
        text = file.read_text("utf-8")
        makers = dict(re.findall(r"^(\w+): Final = (?:partial\()?tuple\.__new__(?:, (\w+)\))?", text, re.MULTILINE))
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for call in ast.walk(ast.parse(text)) if makers else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in makers:
                of_class, items = makers[call.func.id] or ast.unparse(call.args[0]), call.args[-1]
                if isinstance(items, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in items.elts):
                    literal += 1
                    fields = getattr(importlib.import_module(module), of_class)._fields
                    assert len(items.elts) == len(fields), f"{module}:{call.lineno}"
    assert literal
