"""The command `report`: writes the report as HTML files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..middleware import SitemapMiddleware
from ..middleware_lookup import find_middleware
from ..report.request_handler import EXTRA_MISSING
from ..stores.default import only_existing_files
from .command_options import app_options, command, output_options
from .command_target import open_target, reporting_errors
from .terminal_output import CommandError, console, print_line, progress

_WAIT_SECONDS = 60.0
"""Seconds for which the middleware may request pages of the app before it answers with the sitemap."""


@command.command()
@app_options()
@output_options
def report(app: Any, *, out: Path, as_json: bool, **options: Any) -> None:
    """Write the report as HTML files.

    The pages of the option report, as files in DIR that need no server: open index.html in a browser. Like build, it
    requests the sitemap from the app, which saves what it learns in the store that it names.

    Needs the extra report.
    """
    with reporting_errors(), only_existing_files():
        target = open_target(app, **options, serving=True)
        site = target.main_site()
        service = target.service
        if not service.options.enabled:
            raise CommandError(f"there is no report: {service.not_served_reason()}")
        if hint := target.other_site_hint(site):
            raise CommandError(hint)
        try:
            from ..report.static_export import export_report
        except ModuleNotFoundError as error:
            raise CommandError(f"{EXTRA_MISSING} ({error})") from error
        try:
            with target.started() as started, progress("files") as update:
                fetch = started.client(site, _WAIT_SECONDS)
                started.complete_routes(site)
                fetch(service.options.path, "identity")
                # Starlette makes the middleware that answers when the app starts.
                live = find_middleware(target.app, SitemapMiddleware).service
                files = export_report(
                    live if live.published_documents(site) else service, site, out, update, started.async_collector
                )
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error}") from error
        finally:
            target.middleware.close()
    if as_json:
        click.echo(json.dumps({"site": site.base_url, "folder": str(out), "files": files}, indent=2))
    else:
        print_line(console(), f"report of {site.base_url}: {files:,} files in {out}; open {out / 'index.html'}", "bold")
