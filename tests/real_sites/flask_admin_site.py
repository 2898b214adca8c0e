"""A small site with Flask-Admin: a home page, an admin for all, one for editors, and a login form."""

from pathlib import Path

import flask
import flask_login
from flask_admin import Admin, BaseView, expose
from flask_admin.contrib.sqla import ModelView
from flask_sqlalchemy import SQLAlchemy

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

bare = flask.Flask(__name__, instance_path=str(Path().absolute()))
bare.config.update(SECRET_KEY="a secret", SQLALCHEMY_DATABASE_URI="sqlite:///:memory:")
database = SQLAlchemy(bare)
logins = flask_login.LoginManager(bare)
logins.login_view = "login"


class Book(database.Model):
    id = database.Column(database.Integer, primary_key=True)
    title = database.Column(database.String(100))


class Editors(ModelView):
    def is_accessible(self):
        return flask_login.current_user.is_authenticated

    def inaccessible_callback(self, name, **parameters):  # Flask-Admin's signature
        return flask.redirect(flask.url_for("login", next=flask.request.path))


class Forbidden(BaseView):
    @expose("/")
    def index(self):
        return self.render("admin/index.html")

    def is_accessible(self):
        return False


class Statistics(BaseView):
    @expose("/")
    def index(self):
        return self.render("admin/index.html")


class ReadOnly(ModelView):
    can_create = can_edit = can_delete = False


def page(title, content, head=""):
    links = "".join(f'<a href="{path}">{path}</a> ' for path in ("/", "/login", "/admin/"))
    return f"<!doctype html><title>{title}</title>{head}<nav>{links}</nav><main><h1>{title}</h1>{content}</main>"


@bare.route("/")
def home():
    return page("Books", "<p>A shelf of books.</p>")


@bare.route("/login")
def login():
    form = "<form method=post><input name=name><input name=password type=password></form>"
    return page("Log in", form, '<meta name="robots" content="noindex">')


@bare.route("/account")
@flask_login.login_required
def account():
    return page("Account", "<p>Yours.</p>")


@logins.user_loader
def user(_):
    return None


with bare.app_context():
    database.create_all()
    database.session.add_all([Book(title="Beans"), Book(title="Peas")])
    database.session.commit()

admin = Admin(bare, "Shelf")
admin.add_view(ReadOnly(Book, database.session, name="Catalogue", endpoint="catalogue"))
admin.add_view(Editors(Book, database.session, name="Editing", endpoint="editing"))
admin.add_view(Forbidden(name="Forbidden", endpoint="forbidden"))
admin.add_view(Statistics(name="Statistics", endpoint="statistics"))

app = explaining_wsgi(SitemapMiddleware(bare))
