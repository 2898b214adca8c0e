"""A small site with Flask-AppBuilder: views for everyone, models for members, its login and its API."""

from pathlib import Path

import flask
from flask_appbuilder import AppBuilder, BaseView, Model, ModelView, SimpleFormView, expose
from flask_appbuilder.models.sqla.interface import SQLAInterface
from flask_appbuilder.security.decorators import has_access
from flask_wtf import FlaskForm
from sqlalchemy import Column, Integer, String

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

try:  # the name of newer versions
    from flask_appbuilder.utils.legacy import get_sqla_class

    SQLA = get_sqla_class()
except ImportError:
    from flask_appbuilder import SQLA

bare = flask.Flask(__name__, instance_path=str(Path().absolute()))
bare.config.update(
    SECRET_KEY="a secret",
    SQLALCHEMY_DATABASE_URI=f"sqlite:///{Path('appbuilder.sqlite').absolute()}",
    FAB_API_SWAGGER_UI=True,
)
database = SQLA(bare)


class Plant(Model):
    __tablename__ = "plant"

    id = Column(Integer, primary_key=True)
    name = Column(String(50), unique=True, nullable=False)


class Plants(ModelView):
    datamodel = SQLAInterface(Plant)


class Public(BaseView):
    route_base = "/garden"
    default_view = "beds"

    @expose("/beds")
    def beds(self):
        return self.render_template("appbuilder/base.html")

    @expose("/paths/")
    def paths(self):
        return "<!doctype html><title>Paths</title><main>The paths of the garden</main>"

    @expose("/count")
    def count(self):
        return flask.jsonify(2)

    @expose("/members")
    @has_access
    def members(self):
        return self.render_template("appbuilder/base.html")


class Letter(SimpleFormView):
    route_base = "/letter"
    form = FlaskForm
    form_title = "A letter"


with bare.app_context():
    builder = AppBuilder(bare, database.session)
    builder.add_view(Plants, "Plants")
    builder.add_view(Public, "Beds", href="/garden/beds")
    builder.add_link("Paths", href="/garden/paths/")
    builder.add_view(Letter, "Letter")
    database.create_all()

app = explaining_wsgi(SitemapMiddleware(bare))
