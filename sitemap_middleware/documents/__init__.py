"""The sitemap itself: renders entries as XML documents, keeps these up to date, and answers requests for them."""
