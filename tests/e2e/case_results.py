"""unittest.main() that also tells Bazel of each case, so that one that was skipped counts, with its reason."""

import os
import unittest
import xml.etree.ElementTree as ElementTree


class _Result(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = []

    def stopTest(self, test):
        super().stopTest(test)
        self.cases.append(test)


def _write(path, result):
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="unittest")
    for kind, found in (("failure", result.failures), ("error", result.errors)):
        for test, text in found:
            # A subtest's, or of a class' own set-up, which is no case.
            case = ElementTree.SubElement(suite, "testcase", name=test.id())
            ElementTree.SubElement(case, kind, message=text.strip().splitlines()[-1])
    failed = {test.id() for test, _ in result.failures + result.errors}
    skipped = {test.id(): reason for test, reason in result.skipped}
    for test in result.cases:
        if test.id() in failed:
            continue
        case = ElementTree.SubElement(suite, "testcase", name=test.id())
        if test.id() in skipped:
            ElementTree.SubElement(case, "skipped", message=skipped[test.id()])
    ElementTree.ElementTree(suites).write(path)


def main():
    runner = unittest.TextTestRunner(resultclass=_Result, verbosity=2)
    program = unittest.main(testRunner=runner, exit=False)
    if "XML_OUTPUT_FILE" in os.environ:
        _write(os.environ["XML_OUTPUT_FILE"], program.result)
    raise SystemExit(not program.result.wasSuccessful())
