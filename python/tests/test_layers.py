"""The modules of the package form no circle, imports for type checkers and within functions included."""

import ast
from pathlib import Path

import clustergym

PACKAGE = Path(clustergym.__file__).parent


def imports() -> dict[str, set[str]]:
    """The modules of the package that each of them imports."""
    names = {p.stem for p in PACKAGE.glob("*.py")}
    found: dict[str, set[str]] = {}
    for path in PACKAGE.glob("*.py"):
        own = found[path.stem] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                if node.module is None:
                    own.update(a.name for a in node.names)
                else:
                    own.add(node.module.partition(".")[0])
        own &= names
    return found


def test_modules_form_no_circle() -> None:
    left = imports()
    assert len(left) > 20
    while left:
        free = [name for name, own in left.items() if not own & left.keys()]
        assert free, f"these modules import each other: {sorted(left)}"
        for name in free:
            del left[name]
