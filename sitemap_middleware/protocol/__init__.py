"""What the sitemap protocol and its extensions allow: the checks of values that developers give."""
