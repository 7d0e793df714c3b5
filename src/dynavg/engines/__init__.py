"""Where shards live and how instructions reach them."""
