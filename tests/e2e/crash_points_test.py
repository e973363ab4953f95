"""Every named crash point of the worker is one that a test kills a real worker at."""

import pathlib
import re
import unittest

from tests.e2e import decode_test
from tests.e2e import generation_test


class CrashPointsTest(unittest.TestCase):
    def test_each_is_taken(self):
        # common/crash_point_test.cc holds the document to the programs.
        text = pathlib.Path("docs/crash_points.md").read_text()
        documented = set(re.findall(r"`(worker\.[a-z_]+)`", text))
        taken = decode_test.POINTS + generation_test.WORKER_POINTS
        self.assertEqual({point.split(":")[0] for point in taken}, documented)


if __name__ == "__main__":
    unittest.main()
