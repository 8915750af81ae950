#!/usr/bin/env python3
"""Rules of the house that no compiler holds: banned words, reasons for NOLINT, sizes, clean text."""
import re
import sys

from source_files import CODE, read, source_files

MAX_LINES = 500

# (pattern, where: a regular expression over the path, what to use instead)
BANNED = [
    (r"\bstd::string_view\b", r"", "absl::string_view: the two do not convert on every distribution"),
    (r"\babsl::(Reader|Writer)?Mutex(Lock)?\b", r"", "proto/base/sync.h: sanitizers know std::mutex"),
    (r"\bstd::endl\b", r"", "'\\n'"),
    (r"\busing namespace\b", r"", "a using declaration or the full name"),
    (r"(?<![\w_])NULL(?![\w_])", r"\.(cc|cu)$", "nullptr"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep|SleepFor|sleep)\s*\(", r"^tests/.*\.(cc|h)$",
     "an event to wait for"),
    (r"(?<![\w])f?printf\s*\(", r"^(proto|server|agent)/(?!(.*/)?main\.cc$)", "Log, or the program's output code"),
    (r"\bstd::(cout|cerr)\b", r"^(proto|server|agent|client)/(?!(.*/)?main\.cc$)", "an injected stream"),
    (r"\b(throw|dynamic_cast)\b\s*[\w(<]", r"^(proto|server|agent/(?!backends/)|client)/.*\.(cc|h)$", "absl::Status"),
    (r"\bsystem\s*\(", r"^(proto|server|agent|client)/", "posix_spawn"),
]
# Put together, so that this file passes its own check.
UNCLEAN = [
    (re.compile("/" + r"work/(main|shared)"), "a path of one machine"),
    (re.compile("/tmp/" + "plan"), "a path of one machine"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"), "an open end; finish it or leave it out"),
    (re.compile("<" * 7 + "|" + ">" * 7), "a merge conflict"),
]
NOLINT = re.compile(r"NOLINT(NEXTLINE|BEGIN)?(?P<checks>\([^)]*\))?(?P<reason>:\s*\S.{5,})?")
TEXT = CODE + (".py", ".sh", ".md", ".txt", ".cmake", ".json", ".proto", ".sql", ".csv", ".service",
               ".in", ".yml", ".yaml", "")
# Text that is data: recorded output, corpora of odd bytes, problem sets.
DATA = re.compile(r"^(tests/(golden|fuzz/corpus)/|proto/catalog/sets/)")


def without_strings_and_comments(line):
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"//.*", "", line)


def check_code(path, lines):
    for number, line in enumerate(lines, 1):
        bare = without_strings_and_comments(line)
        for pattern, where, instead in BANNED:
            if re.search(where, str(path)) and re.search(pattern, bare):
                yield number, f"banned: {re.search(pattern, bare).group(0).strip()} (use {instead})"
        match = NOLINT.search(line)
        if match and "NOLINTEND" not in line and not (match["checks"] and match["reason"]):
            yield number, "write NOLINT(check): reason"
        if "\t" in line:
            yield number, "a tab"


def check_text(path, text):
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file"
    if "\r" in text:
        yield 1, "a carriage return"
    for number, line in enumerate(lines, 1):
        for pattern, what in UNCLEAN:
            if pattern.search(line):
                yield number, f"{what}: {pattern.search(line).group(0)}"
        if line != line.rstrip():
            yield number, "spaces at the end of the line"
    if path.suffix in CODE + (".py", ".sh", ".cmake") and len(lines) > MAX_LINES:
        yield len(lines), f"{len(lines)} lines; the limit is {MAX_LINES}"
    if path.suffix in CODE:
        yield from check_code(path, lines)


def main():
    bad = 0
    for path in source_files():
        if path.suffix not in TEXT or DATA.match(str(path)):
            continue
        try:
            text = read(path)
        except UnicodeDecodeError:
            print(f"{path}: not UTF-8 text")
            bad += 1
            continue
        for number, problem in check_text(path, text):
            print(f"{path}:{number}: {problem}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
