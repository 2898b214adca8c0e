"""IndexNow: tells search engines which pages are new, changed or gone (https://www.indexnow.org/documentation)."""
