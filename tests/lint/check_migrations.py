#!/usr/bin/env python3
"""Fails when a landed migration was edited, or when one is missing from migrations.sha256.

`--update` adds the migrations that are not listed yet; it never changes a line. A database in the
field has run the old text: a correction is a new migration.
"""
import hashlib
import re
import sys

from source_files import ROOT

LIST = ROOT / "tests/lint/migrations.sha256"
NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


def main():
    landed = {}
    if LIST.exists():
        for line in LIST.read_text().splitlines():
            digest, name = line.split()
            landed[name] = digest
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
             for path in sorted((ROOT / "sql/migrations").glob("*.sql"))}
    if "--update" in sys.argv:
        landed.update({name: digest for name, digest in found.items() if name not in landed})
        LIST.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(
            landed.items(), key=lambda item: item[0])))
    problems = [f"{name}: bad name, want 0001_words.sql" for name in found if not NAME.fullmatch(name)]
    problems += [f"{name}: has landed and is gone" for name in landed if name not in found]
    problems += [f"{name}: changed after it landed; write a new migration (or, if no release ever had"
                 " it, delete its line from tests/lint/migrations.sha256 and run this with --update)"
                 for name, digest in landed.items() if found.get(name, digest) != digest]
    problems += [f"{name}: not in tests/lint/migrations.sha256; run this with --update"
                 for name in found if name not in landed]
    numbers = [int(name[:4]) for name in sorted(found) if NAME.fullmatch(name)]
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"numbers are not 1, 2, 3, ...: {numbers}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
