"""Mutation tests: change a module in many small ways; its own tests must notice nine of ten changes.

`TESTS` names the test files that state the rules of a module. Only these run, so a mutant takes about a second, and
a change that only a distant test notices counts as a survivor.
Each module is tried in its own copy of the sources, `.venv-tests/mutation/<module>`.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

TESTS = {
    "evidence.observation_merge": "unit/evidence/test_observation_merge unit/evidence/test_delisting_confirmation unit/evidence/test_soft_404_by_equal_content unit/evidence/test_lastmod",
    "evidence.page_verdict": "unit/evidence/test_observation_merge unit/evidence/test_delisting_confirmation",
    "evidence.page_timeline": "unit/evidence/test_page_timeline",
    "evidence.html_facts": "unit/evidence/test_html_facts unit/evidence/test_json_ld unit/evidence/test_linear_time_html_prefix",
    "evidence.response_headers": "unit/evidence/test_observation_merge unit/evidence/test_robots_directives",
    "evidence.response_parser": "unit/evidence/test_response_parser integration/test_canonical",
    "evidence.robots_directives": "unit/evidence/test_robots_directives unit/evidence/test_html_facts unit/evidence/test_observation_merge",
    "request_filter.accept_header": "unit/request_filter/test_accept_header",
    "request_filter.asgi": "unit/request_filter/test_asgi unit/request_filter/test_visitor_fingerprint_and_sign_in unit/request_filter/test_accept_header",
    "request_filter.header_rules": "unit/request_filter/test_header_rules unit/request_filter/test_visitor_fingerprint_and_sign_in",
    "request_filter.reasons": "unit/request_filter/test_reasons unit/request_filter/test_header_rules unit/request_filter/test_visitor_fingerprint_and_sign_in",
    "request_filter.visitor_fingerprint_and_sign_in": "unit/request_filter/test_visitor_fingerprint_and_sign_in unit/request_filter/test_asgi unit/request_filter/test_wsgi",
    "request_filter.wsgi": "unit/request_filter/test_wsgi unit/request_filter/test_visitor_fingerprint_and_sign_in unit/request_filter/test_accept_header",
    "evidence.lastmod": "unit/evidence/test_lastmod unit/evidence/test_observation_merge",
    "adapters.wsgi": "unit/adapters/test_wsgi unit/report/test_authorization_inputs integration/test_crawler_visits integration/test_adapters integration/test_unobservable integration/test_app_termination",
    "adapters.asgi": "unit/adapters/test_asgi unit/report/test_authorization_inputs integration/test_crawler_visits integration/test_adapters integration/test_unobservable integration/test_app_termination",
    "adapters.wsgi_request": "unit/adapters/test_wsgi_request integration/test_adapters integration/test_unobservable integration/test_test_clients",
    "adapters.asgi_request": "unit/adapters/test_asgi_request integration/test_adapters integration/test_unobservable integration/test_test_clients integration/test_app_termination",
    "observation.tracked_page_cache": "unit/observation/test_tracked_page_cache unit/observation/test_observer",
    "observation.observer": "unit/observation/test_observer integration/test_content_changes",
    "observation.tracked_page": "unit/observation/test_tracked_page unit/observation/test_observer integration/test_content_changes",
    "listing.policy": "unit/listing/test_policy",
    "listing.candidates": "unit/listing/test_candidates unit/listing/test_named_sections",
    "rendering.responses": "unit/rendering/test_responses",
    "robots_parser": "unit/test_robots",
    "option_sources": "unit/test_option_sources",
    "middleware_lookup": "unit/test_middleware_lookup",
    "robots": "unit/test_robots",
    "urls": "unit/test_urls integration/test_canonical unit/rendering/test_xml unit/test_robots unit/test_hosts",
    "evidence.delisting_confirmation": "unit/evidence/test_delisting_confirmation unit/evidence/test_observation_merge",
    "evidence.template_changes": "unit/evidence/test_template_changes",
    "evidence.compact_content_histories": "unit/evidence/test_compact_content_histories",
    "evidence.relative_time": "unit/evidence/test_relative_time unit/evidence/test_json_ld",
    "evidence.generated_dates": "unit/evidence/test_generated_dates",
    "evidence.body_decoding": "unit/evidence/test_body_decoding",
    "evidence.content_digest": "unit/evidence/test_content_digest unit/evidence/test_html_facts unit/evidence/test_json_ld unit/evidence/test_template_changes",
    "evidence.own_slug_in_content": "unit/evidence/test_own_slug_in_content unit/evidence/test_soft_404_by_equal_content",
    "evidence.page_columns": "unit/evidence/test_page_columns unit/evidence/test_compact_content_histories unit/evidence/test_site_signals unit/stores/test_page_codec unit/listing/test_bulk_learned_entries",
    "evidence.changes_by_time": "unit/evidence/test_changes_by_time",
    "evidence.page_as_of": "unit/evidence/test_page_as_of unit/evidence/test_site_signals",
    "evidence.soft_404_by_equal_content": "unit/evidence/test_soft_404_by_equal_content",
    "evidence.digest_cost_limit": "unit/evidence/test_content_digest unit/evidence/test_relative_time unit/evidence/test_json_ld",
    "evidence.json_ld": "unit/evidence/test_json_ld unit/evidence/test_html_facts",
    "evidence.periods_of_many_changes": "unit/evidence/test_periods_of_many_changes unit/evidence/test_template_changes",
    "evidence.hashes_summed_to_digest": "unit/evidence/test_hashes_summed_to_digest unit/evidence/test_daily_number_changes unit/evidence/test_content_digest unit/evidence/test_own_slug_in_content",
    "evidence.linear_time_html_prefix": "unit/evidence/test_linear_time_html_prefix",
    "evidence.changefreq": "unit/evidence/test_changefreq",
    "evidence.site_signals": "unit/evidence/test_site_signals unit/evidence/test_lastmod unit/evidence/test_template_changes unit/evidence/test_observation_merge unit/evidence/test_changefreq",
    "evidence.daily_number_changes": "unit/evidence/test_daily_number_changes",
    "evidence.packed_content_size": "unit/evidence/test_own_slug_in_content unit/evidence/test_content_digest",
    "adapters.in_process_wsgi_client": "unit/adapters/test_in_process_wsgi_client unit/adapters/test_malformed_responses unit/observation/test_probe_client",
    "adapters.base_request": "unit/adapters/test_wsgi_request unit/adapters/test_asgi_request",
    "adapters.wsgi_body": "unit/adapters/test_wsgi_body",
    "adapters.in_process_asgi_client": "unit/adapters/test_in_process_asgi_client unit/adapters/test_malformed_responses unit/observation/test_probe_client integration/test_app_termination",
    "adapters.event_loop_and_threads": "integration/test_app_termination unit/observation/test_varying_content_prober unit/listing/test_provider_reader",
    "adapters.probe_headers_without_visitor": "unit/adapters/test_probe_headers_without_visitor unit/observation/test_probe_client unit/observation/test_unvisited_page_prober",
    "adapters.asgi_response_sending": "unit/adapters/test_asgi_response_sending unit/adapters/test_asgi_response_sending_of_slow_parts",
    "evidence.observations": "unit/evidence/test_response_parser unit/evidence/test_observation_merge",
    "adapters.disabled_middleware": "unit/test_option_sources unit/test_middleware_lookup",
    "adapters.adapter_choice": "integration/test_app_shapes unit/test_option_sources",
    "adapters.truncated_response": "unit/adapters/test_in_process_wsgi_client unit/adapters/test_in_process_asgi_client unit/observation/test_probe_client",
    "adapters.litestar_installation": "frameworks/test_litestar frameworks/test_contract",
    "observation.parse_and_store": "unit/observation/test_parse_and_store",
    "observation.background_saving": "unit/observation/test_background_saving unit/observation/test_saving_at_exit",
    "observation.unvisited_page_prober": "unit/observation/test_unvisited_page_prober",
    "observation.varying_content_prober": "unit/observation/test_varying_content_prober",
    "observation.unusual_routing_headers": "unit/observation/test_unusual_routing_headers",
    "observation.trust_in_foreign_host_headers": "unit/observation/test_trust_in_foreign_host_headers",
    "listing.entries_by_section": "unit/listing/test_policy unit/listing/test_provider_reader unit/listing/test_provider_item_parameters integration/test_canonical unit/listing/test_named_sections",
    "listing.provider_item_parameters": "unit/listing/test_provider_item_parameters",
    "listing.routes_unsafe_to_request": "unit/listing/test_routes_unsafe_to_request",
    "hosts": "unit/test_hosts",
    "no_sitemap_reasons": "unit/test_no_sitemap_reasons",
    "captured_response": "unit/observation/test_observer",
    "observation.sampling_schedule": "unit/observation/test_sampling_schedule",
}
"""The test files (`tests/<name>.py`) of each module, by the module's name within the package."""

RESULTS: dict[int | None, str] = {0: "survived", 5: "untested", 33: "untested", 34: "skipped", None: "not run"}
"""The result of a mutant by the exit status of its tests (`mutmut.core`); any other status means that a test failed."""

SEED = 2026


@dataclass
class Trial:
    """The results of the mutants of one module."""

    module: str
    mutant_count: int
    results: dict[str, str]
    changes: dict[str, list[str]]
    """The lines that each mutant changes, by its name."""

    @property
    def killed(self) -> int:
        return sum(result == "killed" for result in self.results.values())

    def __str__(self) -> str:
        tried = (
            f"all {self.mutant_count}"
            if len(self.results) == self.mutant_count
            else f"{len(self.results)} of {self.mutant_count}"
        )
        lines = [f"{self.module:24} {tried:>12} {self.killed / max(1, len(self.results)):7.1%}"]
        for name, result in self.results.items():
            if result != "killed":
                lines += [f"    {name}: {result}", *(f"        {line}" for line in self.changes[name])]
        return "\n".join(lines)


def mutation(mutmut: Path, root: Path, home: Path, arguments: list[str]) -> int:
    """Try the modules named, or all of `TESTS`, and print the results; return 1 if fewer than nine of ten are killed.

    `--sample N` tries N mutants of each module, always the same ones.
    """
    sample = 0
    if "--sample" in arguments:
        place = arguments.index("--sample")
        sample = int(arguments[place + 1])
        arguments = arguments[:place] + arguments[place + 2 :]
    modules = [name.removeprefix("sitemap_middleware.") for name in arguments] or list(TESTS)
    if unknown := [name for name in modules if name not in TESTS]:
        print(f"TESTS in tests/mutation.py does not name {', '.join(unknown)}")
        return 2
    trials = []
    for module in modules:
        trials.append(try_module(mutmut, root, home / "mutation" / module, module, sample))
        print(trials[-1], flush=True)
    killed, tried = sum(trial.killed for trial in trials), sum(len(trial.results) for trial in trials)
    print(f"\n{killed:,} of {tried:,} mutants killed: {killed / max(1, tried):.1%}")
    return int(killed < 0.9 * tried)


def try_module(mutmut: Path, root: Path, folder: Path, module: str, sample: int) -> Trial:
    """Make the mutants of a module and run its tests with each of them, or with a sample."""
    prepare(root, folder, module)
    run = [mutmut, "run", "--max-children", str(min(2, os.cpu_count() or 1))]
    no_mutant = "only-make-the-mutants"  # mutmut has no command for this: name a mutant that does not exist
    generation = subprocess.run([*run, no_mutant], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    mutants = sorted(exit_statuses(folder))
    if not mutants or no_mutant.encode() not in generation.stderr:
        raise SystemExit(f"no mutants of {module}: {(generation.stdout + generation.stderr).decode()[-3000:]}")
    names = sorted(random.Random(SEED).sample(mutants, sample)) if 0 < sample < len(mutants) else mutants
    done = subprocess.run([*run, *names], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    statuses = exit_statuses(folder)
    results = {name: RESULTS.get(statuses[name], "killed") for name in names}
    if done.returncode or "not run" in results.values():
        raise SystemExit(f"mutants of {module} were not run: {(done.stdout + done.stderr).decode()[-3000:]}")
    changes = changed_lines(folder / "mutants" / "sitemap_middleware" / f"{module.replace('.', '/')}.py", names)
    tried = {
        name: result
        for name, result in results.items()
        if result != "skipped" and (result == "killed" or not is_equivalent(changes[name]))
    }
    return Trial(module, len(mutants), tried, changes)


def is_equivalent(lines: list[str]) -> bool:
    """Whether a change has no effect that anybody relies on, so that no test can or should notice it.

    These are the letter case of a codec's name, what zip(strict=True) would do in case of a bug, the compression level,
    and the words of a debug log.
    """
    before = {neutral(line[1:]) for line in lines if line[0] == "-"}
    after = {neutral(line[1:]) for line in lines if line[0] == "+"}
    return before == after


def neutral(line: str) -> str:
    """A line of code without what `is_equivalent` ignores."""
    if line.strip().startswith("log.debug("):
        return "log.debug()"
    line = re.sub(
        r"""(code\(|str\(\w+, )?"(latin-1|utf-8|ascii|replace)\"""",
        lambda match: match[0].lower(),
        line,
        flags=re.IGNORECASE,
    )
    line = re.sub(r"strict=\w+|(?<=\), )[0-9](?=\))", "", line)
    return re.sub(r"[\s,]+\)", ")", line)


def changed_lines(file: Path, mutants: list[str]) -> dict[str, list[str]]:
    """Return the lines that each mutant changes, as a diff without context."""
    functions = {}
    for node in ast.walk(ast.parse(source := file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name:
            functions[node.name] = source.splitlines()[node.lineno : node.end_lineno]
    changes = {}
    for mutant in mutants:
        name = mutant.rpartition(".")[2]
        original = functions.get(f"{name.rpartition('_')[0]}_orig", [])
        lines = [*difflib.unified_diff(original, functions.get(name, []), lineterm="", n=0)][2:]
        changes[mutant] = [" ".join(line.split()) for line in lines if not line.startswith("@@")]
    return changes


def prepare(root: Path, folder: Path, module: str) -> None:
    """Copy the sources into a folder, configured to mutate only this module and to run only its tests."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = (root / "pyproject.toml").read_text("utf-8")
    for name in ("sitemap_middleware", "tests", *tomllib.loads(settings)["tool"]["mutmut"]["also_copy"]):
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / name, folder)
    module_settings = {
        "only_mutate": [f"sitemap_middleware/{module.replace('.', '/')}.py"],
        "pytest_add_cli_args_test_selection": [f"tests/{name}.py" for name in TESTS[module].split()],
    }
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in module_settings.items())
    settings, table, rest = settings.partition("[tool.mutmut]")
    assert table, "pyproject.toml has no [tool.mutmut]"
    comment, _, rest = rest.partition("\n")
    (folder / "pyproject.toml").write_text(f"{settings}{table}{comment}\n{lines}{rest}", "utf-8")


def environ(mutmut: Path) -> dict[str, str]:
    """Return the environment without PYTHONPATH, which may lead to sources without mutations."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**variables, "PATH": f"{mutmut.parent}{os.pathsep}{os.environ['PATH']}"}


def exit_statuses(folder: Path) -> dict[str, int | None]:
    """Return the exit status of the tests of each mutant, as mutmut recorded it."""
    statuses: dict[str, int | None] = {}
    for file in (folder / "mutants").rglob("*.py.meta"):
        statuses |= json.loads(file.read_text())["exit_code_by_key"]
    return statuses
