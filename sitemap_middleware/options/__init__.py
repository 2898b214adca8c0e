"""The options of `SitemapMiddleware`: one table of them, where their values come from, and their types."""
