"""The options of `SitemapMiddleware`: one table of them, and where their values come from."""
