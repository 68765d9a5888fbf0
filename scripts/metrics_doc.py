#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/metrics.md from the lists of metrics in the sources; --check only compares, and fails when they differ."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "metrics.md"
LISTS = {
    "te-controller, port 7412": "te-controller/app/metrics.cc",
    "host-agent, where `metrics.listen` says": "host-agent/io/metrics.cc",
}
ENTRY = re.compile(r'"(te_\w+)",\s*"((?:[^"\\]|\\.)+)"')


def page() -> str:
    text = "# Metrics\n\nFor Prometheus, in its text format on `/metrics`. Names that end in `_total` only grow while a program runs.\n"
    for title, source in LISTS.items():
        text += f"\n## {title}\n\n| name | meaning |\n|---|---|\n"
        entries = ENTRY.findall((TOP / source).read_text())
        if not entries:
            sys.exit(f"metrics_doc: no metric found in {source}")
        text += "".join(f"| `{name}` | {meaning} |\n" for name, meaning in sorted(entries))
    return text


def main() -> int:
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.exists() and PAGE.read_text() == page():
        return 0
    print(f"{PAGE.relative_to(TOP)} does not list the metrics as they are: run scripts/metrics_doc.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
