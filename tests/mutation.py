"""Mutation tests: each module is changed in many small ways, and its own tests must notice nine of ten changes.

`TESTS` names the test files that state the rules of a module. Only these run, so a change
counts as noticed only where one would look for it, and a mutant takes about a second.
Each module is tried in a folder of its own, `.venv-tests/mutation/<module>`, from its own copy of the sources.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TESTS = {
    "evidence.merge": "unit/evidence/test_merge unit/evidence/test_confirmation unit/evidence/test_soft_not_found unit/evidence/test_lastmod",
    "evidence.verdict": "unit/evidence/test_merge unit/evidence/test_confirmation",
    "evidence.html_parser": "unit/evidence/test_html_parser unit/evidence/test_structured_data unit/evidence/test_html_limits",
    "evidence.response_headers": "unit/evidence/test_merge unit/evidence/test_robots_directives",
    "evidence.response_parser": "unit/evidence/test_merge integration/test_canonical unit/evidence/test_html_parser integration/test_content_changes unit/observation/test_changed_page_prober",
    "evidence.robots_directives": "unit/evidence/test_robots_directives unit/evidence/test_html_parser unit/evidence/test_merge",
    "request_filter": "unit/test_request_filter",
    "evidence.lastmod": "unit/evidence/test_lastmod unit/evidence/test_merge",
    "adapters.wsgi": "integration/test_adapters integration/test_unobservable integration/test_app_calls integration/test_passthrough integration/test_app_termination unit/adapters/test_internal_headers integration/test_test_clients",
    "adapters.asgi": "integration/test_adapters integration/test_unobservable integration/test_app_calls integration/test_passthrough integration/test_app_termination unit/adapters/test_internal_headers integration/test_test_clients",
    "observation.observer": "unit/observation/test_observer integration/test_learning integration/test_content_changes unit/stores/test_status",
    "listing.policy": "unit/rendering/test_publisher unit/test_decorator unit/test_config",
    "listing.candidates": "unit/rendering/test_publisher unit/test_decorator unit/test_config unit/routing/test_discovery unit/routing/test_shadowed_routes",
    "rendering.responses": "unit/rendering/test_publisher unit/adapters/test_streaming",
    "robots_parser": "unit/test_robots",
    "robots": "unit/test_robots",
    "urls": "integration/test_canonical unit/rendering/test_xml unit/test_robots unit/test_hosts",
    "evidence.confirmation": "unit/evidence/test_confirmation unit/evidence/test_merge",
    "evidence.template_changes": "unit/evidence/test_template_changes",
    "evidence.content_table": "unit/evidence/test_template_changes",
    "evidence.relative_time": "unit/evidence/test_relative_time unit/evidence/test_structured_data integration/test_content_changes",
    "evidence.generated_dates": "unit/evidence/test_lastmod unit/evidence/test_merge",
    "evidence.body_decoding": "unit/evidence/test_body_decoding integration/test_content_changes",
    "evidence.content_digest": "unit/evidence/test_html_parser unit/evidence/test_structured_data integration/test_content_changes unit/evidence/test_template_changes",
    "evidence.soft_not_found": "unit/evidence/test_soft_not_found",
    "evidence.work_budget": "unit/evidence/test_relative_time unit/evidence/test_structured_data integration/test_limits",
    "evidence.structured_data": "unit/evidence/test_structured_data unit/evidence/test_html_parser",
    "evidence.lifespans": "unit/evidence/test_template_changes integration/test_content_changes unit/evidence/test_structured_data",
    "evidence.digest_terms": "unit/evidence/test_daily_counters",
    "evidence.html_limits": "unit/evidence/test_html_limits unit/evidence/test_html_parser integration/test_limits",
    "evidence.changefreq": "unit/evidence/test_changefreq",
    "evidence.site_signals": "unit/evidence/test_lastmod unit/evidence/test_template_changes unit/evidence/test_merge unit/evidence/test_changefreq",
    "evidence.daily_counters": "unit/evidence/test_daily_counters",
    "adapters.base_request": "unit/observation/test_prober unit/adapters/test_internal_headers integration/test_app_shapes",
    "adapters.wsgi_body": "integration/test_app_shapes integration/test_passthrough unit/adapters/test_streaming integration/test_content_changes integration/test_limits",
    "adapters.asgi_client": "integration/test_app_shapes integration/test_passthrough integration/test_app_termination integration/test_limits unit/adapters/test_internal_headers",
    "adapters.async_bridge": "integration/test_app_termination unit/observation/test_changed_page_prober unit/listing/test_providers",
    "adapters.internal_headers": "unit/adapters/test_internal_headers unit/observation/test_prober unit/observation/test_unvisited_page_prober",
    "adapters.streaming": "unit/adapters/test_streaming integration/test_app_shapes",
    "observation.body_sampler": "integration/test_content_changes integration/test_limits unit/evidence/test_changefreq",
}
"""The test files (`tests/<name>.py`) of each module that is tried, by its name within the package."""

KILLED: dict[int | None, str] = {0: "survived", 5: "untested", 33: "untested", 34: "skipped", None: "not run"}
"""What became of a mutant, by how its tests ended (`mutmut.core`); with any other status, a test noticed it."""

SEED = 2026


@dataclass
class Trial:
    """What became of the mutants of one module."""

    module: str
    made: int
    ends: dict[str, str]

    @property
    def killed(self) -> int:
        return sum(end == "killed" for end in self.ends.values())

    def __str__(self) -> str:
        tried = f"all {self.made}" if len(self.ends) == self.made else f"{len(self.ends)} of {self.made}"
        lines = [f"{self.module:24} {tried:>12} {self.killed / max(1, len(self.ends)):7.1%}"]
        lines += [f"    {name}: {end}" for name, end in self.ends.items() if end != "killed"]
        return "\n".join(lines)


def mutation(mutmut: Path, root: Path, home: Path, arguments: list[str]) -> int:
    """Try the modules named, or all of `TESTS`; `--sample N` tries N mutants of each, always the same ones.

    Print what became of them. At least nine of ten mutants must be noticed.
    """
    sample = 0
    if "--sample" in arguments:
        place = arguments.index("--sample")
        sample = int(arguments[place + 1])
        arguments = arguments[:place] + arguments[place + 2 :]
    modules = [name.removeprefix("sitemap_middleware.") for name in arguments] or list(TESTS)
    if unknown := [name for name in modules if name not in TESTS]:
        print(f"tests/mutation.py names no tests of {', '.join(unknown)}")
        return 2
    trials = []
    for module in modules:
        trials.append(try_module(mutmut, root, home / "mutation" / module, module, sample))
        print(trials[-1], flush=True)
    killed, tried = sum(trial.killed for trial in trials), sum(len(trial.ends) for trial in trials)
    print(f"\n{killed:,} of {tried:,} mutants killed: {killed / max(1, tried):.1%}")
    return int(killed < 0.9 * tried)


def try_module(mutmut: Path, root: Path, folder: Path, module: str, sample: int) -> Trial:
    """Make the mutants of a module, and run its tests with each of them, or with a sample."""
    prepare(root, folder, module)
    run = [mutmut, "run", "--max-children", str(min(2, os.cpu_count() or 1))]
    no_mutant = "only-make-the-mutants"  # mutmut has no command that does it alone
    made_by = subprocess.run([*run, no_mutant], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    made = sorted(ends_of(folder))
    if not made or no_mutant.encode() not in made_by.stderr:
        raise SystemExit(f"no mutants of {module}: {(made_by.stdout + made_by.stderr).decode()[-3000:]}")
    names = sorted(random.Random(SEED).sample(made, sample)) if 0 < sample < len(made) else made
    done = subprocess.run([*run, *names], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    ends = {name: KILLED.get(ends_of(folder)[name], "killed") for name in names}
    if done.returncode or "not run" in Counter(ends.values()):
        raise SystemExit(f"mutants of {module} were not run: {(done.stdout + done.stderr).decode()[-3000:]}")
    return Trial(module, len(made), {name: end for name, end in ends.items() if end != "skipped"})


def prepare(root: Path, folder: Path, module: str) -> None:
    """A folder with a copy of the sources, set up to change this module alone and to run its tests alone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = (root / "pyproject.toml").read_text("utf-8")
    for name in ("sitemap_middleware", "tests", *tomllib.loads(settings)["tool"]["mutmut"]["also_copy"]):
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / name, folder)
    own = {
        "only_mutate": [f"sitemap_middleware/{module.replace('.', '/')}.py"],
        "pytest_add_cli_args_test_selection": [f"tests/{name}.py" for name in TESTS[module].split()],
    }
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
    settings, found, rest = settings.partition("[tool.mutmut]")
    assert found, "pyproject.toml has no [tool.mutmut]"
    comment, _, rest = rest.partition("\n")
    (folder / "pyproject.toml").write_text(f"{settings}{found}{comment}\n{lines}{rest}", "utf-8")


def environ(mutmut: Path) -> dict[str, str]:
    """The environment without a path to sources that are not changed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PATH": f"{mutmut.parent}{os.pathsep}{os.environ['PATH']}"}


def ends_of(folder: Path) -> dict[str, int | None]:
    """How the tests of each mutant ended, by mutmut's own record."""
    ends: dict[str, int | None] = {}
    for file in (folder / "mutants").rglob("*.py.meta"):
        ends |= json.loads(file.read_text())["exit_code_by_key"]
    return ends
