"""MLflow's tracking server: Flask behind FastAPI, a page of one script, and an API."""

import os

os.environ.setdefault("_MLFLOW_SERVER_FILE_STORE", "sqlite:///mlflow.db")
os.environ.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", "./artifacts")

from mlflow.server.fastapi_app import app as bare

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_asgi

app = explaining_asgi(SitemapMiddleware(bare))
