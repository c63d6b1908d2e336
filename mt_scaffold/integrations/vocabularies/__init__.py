"""Import and export of other programs' vocabularies: a module for each format."""
