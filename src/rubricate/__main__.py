"""`python -m rubricate` is the command `rubricate`."""

from rubricate.cli import main

if __name__ == "__main__":
    main()
