"""No file tells of the machine it was written on, nor from where packages came to it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from house.tree import Tree

TRACES = re.compile(
    rb"(?<![\w.)}\]-])/(?:work|root|opt/pypi|opt/wheels)/"
    rb"|\bpy(?:pi\.org|thonhosted)"
    rb"|--(?:extra-)?index-url[= ]|--find-links[= ]"
    rb"|://[^\s/]+/(?:[^\s/]+/)*simple\b"
)


def offences(tree: Tree) -> Iterator[str]:
    for path in _files(tree):
        file = tree.top / path
        if not file.is_file() or file.is_symlink():
            continue
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            for trace in TRACES.finditer(line):
                yield f"{path}:{number}: `{trace[0].decode()}` tells of one machine"


def _files(tree: Tree) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tree.top,
        check=True,
        capture_output=True,
    )
    return listed.stdout.decode().split("\0")[:-1]
