"""Clear the stored pages in place: for the branch `learn`, which Colab and hubs open."""

import json
import sys

from lab import load_workspace
from tree import Tree


def main() -> int:
    """Clear every page of this checkout; return the exit status."""
    cleared = load_workspace().cleared
    tree = Tree()
    for name in tree.names():
        path = tree.notebook(name)
        page = cleared(json.loads(path.read_text(encoding="utf-8")))
        text = json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
