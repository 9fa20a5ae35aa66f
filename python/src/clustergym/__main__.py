"""``python -m clustergym``: ``gymctl`` with the same arguments; without any, its help."""

from __future__ import annotations

import sys

from clustergym_cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["--help"]))
