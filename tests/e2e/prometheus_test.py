"""Prometheus itself at live daemons: what is shipped scrapes, evaluates, shows and fires."""

import json
import pathlib
import re
import shutil
import signal
import socket
import unittest
import urllib.error
import urllib.parse
import urllib.request

from tests.e2e import harness

SHIPPED = pathlib.Path("deploy/prometheus")
DASHBOARD = pathlib.Path("deploy/grafana/plumbline.json")
METRIC = re.compile(r"\bplumbline_[a-z0-9_]+\b")
RECORDED = re.compile(r"\bplumbline:[a-z0-9_]+:[a-z0-9_]+\b")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class PrometheusTest(harness.Case):
    def setUp(self):
        super().setUp()
        self.server_process = self.start_server("--lease-duration=2s")
        ready = json.loads(pathlib.Path(self.path("server.json")).read_text())
        self.http = ready["http"]
        self.worker = self.start_worker("a", "--metrics=127.0.0.1:0")
        self.configure(json.loads(pathlib.Path(self.path("worker-a.json")).read_text())["metrics"])
        self.start_prometheus()

    def configure(self, worker):
        """The shipped files, at these daemons and faster; of a rule only how long it waits is changed."""
        folder = pathlib.Path(self.path("prometheus"))
        folder.mkdir()
        for name in ("prometheus.yml", "plumbline.rules.yml", "workers.yml"):
            text = (SHIPPED / name).read_text()
            text = text.replace("127.0.0.1:7434", self.http).replace("127.0.0.1:7435", worker)
            text = re.sub(r"(scrape|evaluation)_interval: \w+", r"\1_interval: 200ms", text)
            text = re.sub(r"\bfor: \w+", "for: 1s", text)
            (folder / name).write_text(text)
        self.assertIn(self.http, (folder / "prometheus.yml").read_text())
        self.assertIn(worker, (folder / "workers.yml").read_text())

    def start_prometheus(self):
        """At a port that is free; another one where somebody was faster."""
        while True:
            port = free_port()
            self.prometheus = f"http://127.0.0.1:{port}"
            process = self.start(
                "prometheus",
                f"--config.file={self.path('prometheus')}/prometheus.yml",
                f"--storage.tsdb.path={self.path('series')}",
                f"--web.listen-address=127.0.0.1:{port}",
            )

            def started():
                try:
                    urllib.request.urlopen(f"{self.prometheus}/-/ready", timeout=10).close()
                    return True
                except (urllib.error.URLError, OSError):
                    return process.poll() is not None

            harness.wait_until(started, "Prometheus is ready")
            if process.poll() is None:
                return
            self.assertIn("address already in use", self.log_of(process))

    def api(self, path, **parameters):
        url = f"{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=harness.DEADLINE_SECONDS) as answer:
                answered = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        self.assertEqual(answered["status"], "success", parameters)
        return answered["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def await_data(self, expression):
        harness.wait_until(lambda: self.query(expression), f"series of {expression}")

    def value(self, expression):
        result = self.query(expression)
        return float(result[0]["value"][1]) if result else None

    def rules(self):
        return [rule for group in self.api("rules")["groups"] for rule in group["rules"]]

    def alert(self, name):
        (rule,) = [rule for rule in self.rules() if rule["name"] == name]
        return rule

    def await_alert(self, name, state):
        harness.wait_until(lambda: self.alert(name)["state"] == state, f"{name} is {state}")

    def submit(self, *words):
        ended = self.run_client("submit", "block-replay", "--checkpoint=checkpoint", *words)
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def run_jobs(self):
        """One of each kind whose figures are shown: a replay, and a generation that is saved and goes on."""
        job = self.submit("--layouts=tiny")
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        contract, conditioning = self.path("contract.json"), self.path("conditioning.safetensors")
        write = [
            shutil.which("python3"), "-m", "tests.e2e.write_generation",
            harness.GOLDEN, contract, conditioning, "3",
        ]  # fmt: skip
        process = self.start(*write)
        self.assertEqual(self.await_end(process), 0, self.log_of(process))
        ended = self.run_client(
            "submit", "generation", "--checkpoint=checkpoint", f"--contract={contract}",
            f"--conditioning={conditioning}", "--preflight", "--wait",
        )  # fmt: skip
        self.assertEqual(ended.status, 0, ended)

    def panels(self):
        """(panel, expression) of the dashboard, with Grafana's variables filled in as it does for All."""
        found = []
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"].replace("$__rate_interval", "1m")
                expression = re.sub(r"\$(server|worker)\b", ".*", expression)
                self.assertNotIn("$", expression, panel["title"])
                found.append((panel["title"], expression))
        return found

    def test_what_is_shipped_works_at_live_daemons(self):
        jobs = {"plumbline-server", "plumbline-worker"}

        def targets_up():
            active = self.api("targets")["activeTargets"]
            return {each["labels"]["job"] for each in active if each["health"] == "up"} == jobs

        harness.wait_until(targets_up, "both targets are up")
        self.run_jobs()
        # Rates need what came after the first look too: a second round.
        self.await_data('plumbline_steps_total{origin="computed"} > 0')
        self.await_data('plumbline_worker_step_seconds_count{origin="computed"} > 0')
        self.submit("--layouts=tiny")

        panels = self.panels()
        shown = "\n".join(expression for _, expression in panels)
        rules = (SHIPPED / "plumbline.rules.yml").read_text()
        for name in sorted(set(METRIC.findall(shown + rules))):
            self.await_data(name)
        # And everything that the daemons export about themselves is shown, itself or by a rule.
        for name in self.api("label/__name__/values"):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            if name.startswith("plumbline_") and base not in shown + rules:
                self.fail(f"{name} is in no panel and no rule")

        for rule in self.rules():
            self.assertEqual(rule.get("lastError", ""), "", rule)
        harness.wait_until(
            lambda: all(rule["health"] == "ok" for rule in self.rules()), "every rule is evaluated"
        )
        recorded = set(re.findall(r"record: (\S+)", rules))
        self.assertGreater(len(recorded), 5)
        self.assertLessEqual(set(RECORDED.findall(shown + rules)), recorded)
        for name in sorted(recorded):
            self.await_data(name)
        self.assertGreater(len(panels), 30)
        for title, expression in panels:
            harness.wait_until(lambda: self.query(expression), f"{title} shows {expression}")
        self.assertEqual(self.value('sum(plumbline_workers{state="active"})'), 1)

        # Nothing is wrong.
        firing = {rule["name"] for rule in self.rules() if rule.get("state") == "firing"}
        self.assertEqual(firing, set())
        self.alerts_fire_and_end()

    def alerts_fire_and_end(self):
        # The worker goes, tasks wait.
        self.worker.send_signal(signal.SIGTERM)
        self.assertEqual(self.await_end(self.worker), 0)
        job = self.submit("--layouts=tiny")
        self.await_alert("PlumblineNoWorkers", "firing")
        (alert,) = self.alert("PlumblineNoWorkers")["alerts"]
        self.assertEqual(alert["labels"]["severity"], "warning")
        self.assertEqual(alert["annotations"]["summary"], "Tasks wait and no worker is there.")
        self.start_worker("b")
        self.assertEqual(self.run_client("jobs", "watch", job).status, 0)
        self.await_alert("PlumblineNoWorkers", "inactive")

        self.kill(self.server_process)
        self.await_alert("PlumblineServerDown", "firing")
        (alert,) = self.alert("PlumblineServerDown")["alerts"]
        self.assertEqual(alert["labels"]["severity"], "critical")
        self.assertIn(self.http, alert["annotations"]["summary"])
        self.assertEqual(self.value(f'up{{instance="{self.http}"}}'), 0)


if __name__ == "__main__":
    unittest.main()
