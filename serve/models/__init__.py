"""Networks under the names that clients know, each of which can be replaced while it serves."""
