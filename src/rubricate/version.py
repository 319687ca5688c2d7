"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("rubricate")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0.0.0"
