"""An Otter Wiki (Flask) with two pages. Its own sitemap keeps /sitemap.xml."""
# ruff: noqa: E402 # the app reads its settings as it is imported

import os
import subprocess
from pathlib import Path

repository = Path("repository").absolute()
if not repository.exists():
    repository.mkdir()
    git = ["git", "-C", str(repository), "-c", "user.name=author", "-c", "user.email=author@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (repository / "home.md").write_text("# Home\n\nSee [[Garden]].\n")
    (repository / "garden.md").write_text("# Garden\n\nBeans and peas.\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "Two pages"], check=True)
os.environ.update(
    REPOSITORY=str(repository),
    SECRET_KEY="a secret of sixteen characters or more",
    SQLALCHEMY_DATABASE_URI=f"sqlite:///{Path('otterwiki.sqlite').absolute()}",
)

from otterwiki.server import app as bare

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

app = explaining_wsgi(SitemapMiddleware(bare, path="/pages.xml"))
