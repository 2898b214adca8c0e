"""simple-repository-server (FastAPI): a package index of one folder that adds its routes at startup."""

from pathlib import Path

from simple_repository_server.__main__ import create_app

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_asgi

for package in ("alpha-1.0", "alpha-1.1", "beta-2.0"):
    file = Path("packages", package.partition("-")[0], f"{package}.tar.gz")
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"a package")

bare = create_app(["packages"])

wrapped = explaining_asgi(SitemapMiddleware(bare, store="memory://", learn="/simple/{project_name}/"))
