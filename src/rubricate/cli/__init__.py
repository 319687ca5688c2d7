"""Command line of rubricate."""
