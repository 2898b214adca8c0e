"""Photologue (Django), with galleries of pictures, in a base template with a logo."""
# ruff: noqa: E402 # Django is configured first

from pathlib import Path

from . import django_settings, picture

Path("templates").mkdir(exist_ok=True)
Path("templates", "base.html").write_text(
    "<!doctype html><html><head><title>{% block title %}{% endblock %}</title></head><body>"
    '<img src="/static/logo.png">{% block content %}{% endblock %}</body></html>'
)
django_settings(["photologue", "sortedm2m"], [("", "photologue.urls")])

from django.contrib.sites.models import Site
from django.core.files.images import ImageFile
from django.core.wsgi import get_wsgi_application
from photologue.models import Gallery, Photo

if not Photo.objects.exists():
    for group in range(4):
        gallery = Gallery.objects.create(title=f"Gallery {group}", slug=f"gallery-{group}", description="Views.")
        gallery.sites.add(Site.objects.get())
        for number in range(group * 6, group * 6 + 6):
            photo = Photo(title=f"Photo {number}", slug=f"photo-{number}", caption="A view.")
            photo.image.save(f"photo{number}.jpg", ImageFile(picture(number).open("rb")))
            photo.sites.add(Site.objects.get())
            gallery.photos.add(photo)

app = get_wsgi_application()
