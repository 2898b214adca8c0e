"""Pages: what a response says of its page, and what a history of responses allows us to say."""
