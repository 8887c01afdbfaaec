"""The site of the documentation: the tree of pages that mkdocs reads, and the check of what it wrote."""
