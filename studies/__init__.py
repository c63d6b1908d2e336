"""Studies that are run from this source folder, not installed with the package."""
