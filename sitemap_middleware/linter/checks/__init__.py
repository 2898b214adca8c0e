"""Checks: pure functions that take what was read, and return the findings.

A module here finds what the module of the same name in `rules/` declares. Further modules:

- `sitemap_location` and `duplicate_urls` find what `rules.loc` declares about URLs beside other URLs.
- `child_element_names` finds what `rules.xml` declares about the children of an entry; `xml_reader` and `entries_check`
  find the rest of it.
- `extensions` calls the checks of images, videos, news and hreflang.
- `language_codes` has the codes that hreflang and news may have.

What `rules.size_and_index` declares is found by `streamed_document_check` and `entries_check`, which count.
"""
