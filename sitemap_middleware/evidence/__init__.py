"""Evidence: what a response says about its page, and what a page's history proves."""
