"""Pages for people: what the sitemap lists, and why. Needs the extra `report`."""
