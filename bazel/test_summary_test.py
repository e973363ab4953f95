"""The events are shaped as Bazel 4.2.3 writes them, the XML as GoogleTest 1.12 does."""
import unittest

from bazel import test_summary

GTEST_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="1" disabled="1" errors="0" name="AllTests">
  <testsuite name="Norm" tests="5" failures="1" disabled="1" skipped="1" errors="0">
    <testcase name="Forward" status="run" result="completed" classname="Norm" />
    <testcase name="Backward" status="run" result="completed" classname="Norm" />
    <testcase name="Repeats" status="run" result="completed" classname="Norm"><failure message="1 != 2"/></testcase>
    <testcase name="OnGpu" status="run" result="skipped" classname="Norm"><skipped message="x/norm_test.cc:7&#x0A;no GPU"/></testcase>
    <testcase name="DISABLED_Old" status="notrun" result="suppressed" classname="Norm" />
  </testsuite>
</testsuites>"""

BAZEL_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="x/script_test" tests="1" failures="0" errors="0">
  <testcase name="x/script_test" status="run" duration="0" time="0"></testcase>
</testsuite></testsuites>"""


def configured(label, test=True):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"} if test else {}}


def completed(label, success=True):
    return {"id": {"targetCompleted": {"label": label}}, "completed": {"success": True} if success else {}}


def result(label, status, xml, attempt=1):
    return {
        "id": {"testResult": {"label": label, "run": 1, "shard": 1, "attempt": attempt}},
        "testResult": {"status": status, "testActionOutput": [{"name": "test.xml", "uri": xml}] if xml else []},
    }


def finished(code):
    return {"id": {"buildFinished": {}}, "finished": {"exitCode": {"code": code}}}


class TestSummaryTest(unittest.TestCase):

    def summarise(self, events):
        """The tests' XML stands where its URI would."""
        totals = test_summary.Totals()
        test_summary.add_run(totals, events, read_uri=lambda uri: uri)
        return totals

    def test_counts_cases_of_a_test_that_names_them(self):
        totals = self.summarise([
            configured("//x:norm_test"), completed("//x:norm_test"),
            result("//x:norm_test", "FAILED", GTEST_XML), finished(3)])
        self.assertEqual(totals.line(), "2 passed, 1 failed, 2 skipped")
        self.assertEqual(totals.failures, ["//x:norm_test Norm.Repeats"])
        self.assertEqual(totals.reasons, [("//x:norm_test", "x/norm_test.cc:7\nno GPU")])

    def test_counts_a_test_without_named_cases_as_one(self):
        totals = self.summarise([
            configured("//x:script_test"), completed("//x:script_test"),
            result("//x:script_test", "PASSED", BAZEL_XML),
            configured("//x:silent_test"), completed("//x:silent_test"),
            result("//x:silent_test", "PASSED", None), finished(0)])
        self.assertEqual(totals.line(), "2 passed, 0 failed, 0 skipped")

    def test_a_timeout_fails_whatever_its_xml_says(self):
        for xml in (BAZEL_XML, "<testsuites><testsuite", None):
            totals = self.summarise([
                configured("//x:slow_test"), completed("//x:slow_test"),
                result("//x:slow_test", "TIMEOUT", xml), finished(3)])
            self.assertEqual(totals.failed, 1)
            self.assertEqual(totals.failures, ["//x:slow_test (TIMEOUT)"])

    def test_the_last_attempt_counts(self):
        totals = self.summarise([
            configured("//x:a_test"), completed("//x:a_test"),
            result("//x:a_test", "FAILED", None, attempt=1),
            result("//x:a_test", "PASSED", BAZEL_XML, attempt=2), finished(0)])
        self.assertEqual(totals.line(), "1 passed, 0 failed, 0 skipped")

    def test_what_does_not_build_fails(self):
        totals = self.summarise([
            configured("//x:a_test"), completed("//x:a_test", success=False),
            configured("//x:library", test=False), completed("//x:library", success=False),
            configured("//x:never_reached_test"), finished(1)])
        self.assertEqual(totals.line(), "0 passed, 3 failed, 0 skipped")

    def test_a_test_for_hardware_that_is_not_there_is_skipped(self):
        totals = self.summarise([
            configured("//x:cuda_test"),
            {"id": {"targetCompleted": {"label": "//x:cuda_test"}}, "aborted": {"reason": "SKIPPED"}}, finished(0)])
        self.assertEqual(totals.line(), "0 passed, 0 failed, 1 skipped")

    def test_bazel_failing_for_a_reason_of_its_own_fails(self):
        self.assertEqual(self.summarise([finished(1)]).failures, ["bazel ended with exit status 1"])
        self.assertEqual(self.summarise([]).failures, ["bazel did not finish"])

    def test_several_runs_are_told_apart_and_added_up(self):
        plain = self.summarise([
            configured("//x:norm_test"), completed("//x:norm_test"),
            result("//x:norm_test", "PASSED", BAZEL_XML), finished(0)])
        sanitized = self.summarise([
            configured("//x:norm_test"), completed("//x:norm_test"),
            result("//x:norm_test", "FAILED", GTEST_XML), finished(3)])
        totals = test_summary.Totals()
        totals.fail("formatting")
        self.assertEqual(test_summary.summarise(totals, [("tests", plain), ("asan", sanitized)]), [
            "SKIPPED asan: //x:norm_test: x/norm_test.cc:7 no GPU",
            "FAILED formatting",
            "FAILED asan: //x:norm_test Norm.Repeats",
            "tests: 1 passed, 0 failed, 0 skipped",
            "asan: 2 passed, 1 failed, 2 skipped",
            "3 passed, 2 failed, 2 skipped"])
        self.assertEqual(
            test_summary.summarise(test_summary.Totals(), [("asan", sanitized)])[-2:],
            ["FAILED //x:norm_test Norm.Repeats", "2 passed, 1 failed, 2 skipped"])


if __name__ == "__main__":
    unittest.main()
