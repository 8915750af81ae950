#!/usr/bin/env python3
"""Adds up a JUnit report of ctest: prints "PASSED FAILED SKIPPED".

With CI=true a test that skipped because a data set is not there counts as failed: on a machine that
is set up for it, such a skip would hide a hole.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


def skip_message(case):
    skipped = case.find("skipped")
    return "" if skipped is None else skipped.get("message", "")


def main():
    passed = failed = skipped = 0
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status == "fail" or case.find("failure") is not None:
            failed += 1
        elif status != "disabled" and not skip_message(case).startswith("SKIP_"):
            failed += 1  # could not be started, say for want of its program
        else:
            said = " ".join(text for text in case.itertext()).lower()
            if os.environ.get("CI") == "true" and "data set" in said:
                print(f"{case.get('name')}: skipped for want of a data set", file=sys.stderr)
                failed += 1
            else:
                skipped += 1
    print(passed, failed, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
