"""The Prometheus rules are well formed, fire when they must, and ask for metrics that exist."""

import pathlib
import re
import subprocess
import unittest

FOLDER = pathlib.Path("deploy/prometheus")
RULES = "plumbline.rules.yml"


class RulesTest(unittest.TestCase):
    def promtool(self, *words):
        ended = subprocess.run(
            ["promtool", *words],
            cwd=FOLDER,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stdout)

    def test_they_are_well_formed(self):
        self.promtool("check", "rules", RULES)

    def test_they_say_what_they_must(self):
        self.promtool("test", "rules", "plumbline.rules_test.yml")

    def test_every_metric_exists(self):
        sources = "".join(
            pathlib.Path(path).read_text()
            for path in ["server/metrics/server_metrics.cc", "worker/worker_metrics.cc"]
        )
        made = set(re.findall(r'"(plumbline_\w+)"', sources))
        asked = set(re.findall(r"\bplumbline_[a-z_]+\b", (FOLDER / RULES).read_text()))
        self.assertGreater(len(asked), 8)
        for name in asked:
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            self.assertTrue(name in made or base in made, name)

    def test_every_alert_has_its_section_in_the_guide_and_every_section_its_alert(self):
        alerts = re.findall(r"- alert: (\w+)", (FOLDER / RULES).read_text())
        guide = pathlib.Path("docs/operations.md").read_text().split("\n## Alerts\n")
        self.assertEqual(len(guide), 2)
        sections = re.split(r"(?m)^### (\w+)$", guide[1].split("\n## ")[0])[1:]
        self.assertEqual(sections[::2], alerts)
        for name, text in zip(sections[::2], sections[1::2]):
            self.assertGreater(len(text.split()), 30, name)

    def test_every_metric_is_in_the_guide(self):
        sources = "".join(
            pathlib.Path(path).read_text()
            for path in ["server/metrics/server_metrics.cc", "worker/worker_metrics.cc"]
        )
        guide = pathlib.Path("docs/operations.md").read_text()
        for name in re.findall(r'"(plumbline_\w+)"', sources):
            self.assertRegex(guide, rf"`{name}[`{{]")

    def test_every_alert_says_what_to_do(self):
        text = (FOLDER / RULES).read_text()
        alerts = text.count("- alert:")
        self.assertGreater(alerts, 5)
        self.assertEqual(text.count("summary:"), alerts)
        self.assertEqual(text.count("action:"), alerts)
        tested = (FOLDER / "plumbline.rules_test.yml").read_text()
        for name in re.findall(r"- alert: (\w+)", text):
            self.assertIn(name, tested)


if __name__ == "__main__":
    unittest.main()
