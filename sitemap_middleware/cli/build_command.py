"""The command `build`: writes the sitemap as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..stores.default import only_existing_files
from . import results_as_json_and_csv, results_as_text
from .command_options import app_options, command, output_options
from .command_target import open_target, reporting_errors
from .sitemap_export import export
from .terminal_output import CommandError, progress


@command.command()
@app_options()
@output_options
def build(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the sitemap as files.

    The documents that the app serves are written into DIR, each also compressed with gzip. The app keeps what it
    learns in the store that it names. If it names none, the default sitemap.sqlite3 is used if there is one; no new one
    is created.
    """
    with reporting_errors(), only_existing_files():
        target = open_target(app, **options, serving=True)
        site = target.main_site()
        if not target.service.options.enabled:
            raise CommandError(f"there is no sitemap: {target.service.not_served_reason()}")
        if site.loopback and target.site_option is None:
            raise CommandError("the app's base_url is not set: give --base-url, such as https://example.com")
        if hint := target.other_site_hint(site):
            raise CommandError(hint)
        try:
            with target.started() as started, progress("documents") as update:
                fetch = started.client(site)
                started.complete_routes(site)
                files = export(fetch, site, target.service.options.path, out, update)
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error}") from error
        finally:
            target.middleware.close()
    if as_json:
        click.echo(json.dumps(results_as_json_and_csv.build_as_json(site.base_url, files), indent=2))
    else:
        results_as_text.print_build(site.base_url, files, out)
