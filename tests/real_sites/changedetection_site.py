"""changedetection.io (Flask): a login, an API, and settings that change what it does. Here with its default watches."""

from pathlib import Path

from changedetectionio import store
from changedetectionio.flask_app import changedetection_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

Path("datastore").mkdir(exist_ok=True)
datastore = store.ChangeDetectionStore(datastore_path="datastore", include_default_watches=False)
bare = changedetection_app({"datastore_path": "datastore", "disable_checkver": True}, datastore)

app = explaining_wsgi(SitemapMiddleware(bare))
