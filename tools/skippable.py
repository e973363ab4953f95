"""unittest.main() that tells Bazel which cases were skipped, and why: './dev test' counts them as skipped, not passed."""

import os
import unittest
import xml.etree.ElementTree as ElementTree


class _Result(unittest.TextTestResult):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test)


def main():
    program = unittest.main(exit=False, verbosity=2, testRunner=unittest.TextTestRunner(resultclass=_Result, verbosity=2))
    result = program.result
    suite = ElementTree.Element("testsuite")

    def add(test, outcome="", text=""):
        case = ElementTree.SubElement(suite, "testcase", classname=type(test).__name__, name=str(test).split(" ")[0])
        if outcome:
            ElementTree.SubElement(case, outcome, message=text)

    for test in result.passed:
        add(test)
    for test, reason in result.skipped:
        add(test, "skipped", reason)
    for test, text in [*result.failures, *result.errors]:
        add(test, "failure", text)
    if "XML_OUTPUT_FILE" in os.environ:
        root = ElementTree.Element("testsuites")
        root.append(suite)
        ElementTree.ElementTree(root).write(os.environ["XML_OUTPUT_FILE"])
    raise SystemExit(not result.wasSuccessful())
