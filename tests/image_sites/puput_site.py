"""Puput, a blog on Wagtail (Django), with entries that have pictures."""
# ruff: noqa: E402 # Django is configured first

from datetime import UTC, datetime

from . import django_settings, picture

WAGTAIL = "admin contrib.routable_page contrib.settings contrib.sitemaps documents embeds images search sites snippets"
OTHERS = ("wagtail.users", "wagtail", "modelcluster", "taggit", "django_comments", "el_pagination")
django_settings(
    ["puput", *(f"wagtail.{name}" for name in WAGTAIL.split()), *OTHERS],
    [("", "puput.urls"), ("", "wagtail.urls")],
    PUPUT_AS_PLUGIN=False,
    WAGTAIL_SITE_NAME="Blog",
    WAGTAILADMIN_BASE_URL="http://localhost",
)

from django.core.files.images import ImageFile
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from puput.models import BlogPage, EntryPage
from wagtail.images.models import Image
from wagtail.models import Site

if not BlogPage.objects.exists():
    call_command("puput_initial_data")
    Site.objects.update(hostname="localhost", port=80)
    pictures = [
        Image.objects.create(
            title=f"Picture {number}", file=ImageFile(picture(number).open("rb"), name=f"picture{number}.jpg")
        )
        for number in range(26)
    ]
    blog = BlogPage.objects.get()
    blog.header_image = pictures[0]
    blog.save_revision().publish()
    for number in range(1, 25):
        inner = f'<embed alt="" embedtype="image" format="fullwidth" id="{pictures[number + 1].pk}"/>'
        entry = blog.add_child(
            instance=EntryPage(
                title=f"Entry {number}",
                slug=f"entry-{number}",
                date=datetime(2025, (number + 2) // 3, number, tzinfo=UTC),
                body=f"<p>About {number}.</p>{inner if number % 3 == 0 else ''}",
                header_image=pictures[number],
            )
        )
        entry.save_revision().publish()

app = get_wsgi_application()
