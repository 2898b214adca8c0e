"""Publishing: documents, kept as they were rendered, put together, and served."""
