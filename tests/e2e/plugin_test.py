"""Plug-ins, end to end: a team's shared object judged at every depth, and what it cannot break."""

import json
import math
import os
import pathlib
import shlex
import shutil
import signal
import struct
import unittest

from tests.e2e import harness

LEASE = "--lease-duration=2s"
CHECKPOINT = "--checkpoint=checkpoint"
SMALL = "7,2,6,8,5,first"
SWIGLU = "candidate+plugin/example_swiglu:swiglu"
EXAMPLES = os.path.abspath("examples/plugin")
# Of the captured generation.
CONTRACT = {
    "seeds": [42],
    "num_frames": 5,
    "height": 96,
    "width": 128,
    "num_inference_steps": 3,
    "num_audio_latents": 5,
    "rng": "torch-cpu",
}


class PluginCase(harness.Case):
    def folder_of(self, *objects):
        """A folder with copies of the examples, as a worker's operator fills it."""
        folder = self.path("-".join(["plugins", *(name.replace("/", "_") for name in objects)]))
        os.makedirs(folder)
        for name in objects:
            shutil.copy(f"{EXAMPLES}/{name}.so", folder)
        return folder

    def start_plugin_worker(self, name, *objects, flags=()):
        return self.start_worker(name, f"--plugins={self.folder_of(*objects)}", *flags)

    def replay(self, composition, *flags):
        return self.run_client(
            "submit", "block-replay", CHECKPOINT, f"--layout={SMALL}",
            f"--composition={composition}", *flags
        )

    def report(self, job):
        return json.loads(self.run_client("report", job, "--format=json").out)


class PluginDepthsTest(PluginCase):
    def setUp(self):
        super().setUp()
        self.start_server()
        self.start_plugin_worker("a", "swiglu", "fused_norm", "wrong/neighbours", "wrong/other_abi")

    def test_block_replay_names_owner_status_and_digest(self):
        ended = self.replay(SWIGLU, "--backward", "--wait", f"--report={self.path('report.json')}")
        self.assertEqual(ended.status, 0, ended)
        self.assertIn("plugin/example_swiglu", ended.out)
        (task,) = json.loads(pathlib.Path(self.path("report.json")).read_text())["tasks"]
        entries = {entry["name"]: entry for entry in task["block_replay"]["entries"]}
        self.assertEqual(
            entries["swiglu"]["implementation"],
            {
                "requested": "plugin/example_swiglu",
                "actual": "plugin/example_swiglu",
                "owner": "Plumbline examples",
                "status": "NODE_STATUS_BOUND",
            },
        )
        parts = {part["name"]: part["value"] for part in task["identity"]["parts"]}
        self.assertRegex(parts["plugin.example_swiglu"], "^[0-9a-f]{64} example_swiglu 1$")
        self.assertEqual(parts["composition"], SWIGLU)
        references = task["reference_identities"]["provider/default"]["parts"]
        self.assertFalse([part for part in references if part["name"].startswith("plugin.")])

    def test_a_broken_promise_fails_the_batch_gate(self):
        ended = self.replay("candidate+plugin/neighbours:swiglu", "--wait")
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("first failure swiglu (batch)", ended.out)
        self.assertIn("promises to be row-invariant and is not, at swiglu", ended.out)

    def test_full_model_ablation_sweep_and_generation(self):
        full = self.run_client(
            "submit", "full-model", CHECKPOINT, f"--layout={SMALL}", f"--composition={SWIGLU}",
            "--ablation", "--wait", f"--report={self.path('full.json')}",
        )
        self.assertEqual(full.status, 0, full)
        report = json.loads(pathlib.Path(self.path("full.json")).read_text())
        (task,) = report["tasks"]
        groups = {g["requested"]: g["nodes"] for g in task["full_model"]["trace"]["groups"]}
        self.assertIn("block.*/swiglu", groups["plugin/example_swiglu"])
        # A refiner's SwiGLU is the same operation, and the composition's word for both.
        self.assertIn("refiner.0/swiglu", groups["plugin/example_swiglu"])
        self.assertEqual(len(task["full_model"]["ablation"]), 9)

        conditioning = self.path("conditioning.safetensors")
        harness.write_conditioning(conditioning)
        contract = self.path("contract.json")
        pathlib.Path(contract).write_text(json.dumps(CONTRACT))
        generation = [
            "submit", "generation", CHECKPOINT, f"--contract={contract}",
            f"--conditioning={conditioning}", f"--gate={report['job']}", "--wait",
        ]
        gated = self.run_client(*generation, f"--composition={SWIGLU}",
                                f"--report={self.path('generation.json')}")
        self.assertIn(gated.status, (0, 1), gated)
        (task,) = json.loads(pathlib.Path(self.path("generation.json")).read_text())["tasks"]
        parts = {part["name"]: part["value"] for part in task["identity"]["parts"]}
        self.assertIn("plugin.example_swiglu", parts)
        # The gate was another composition's.
        other = self.run_client(*generation, "--composition=candidate")
        self.assertNotIn(other.status, (0, 1), other)

        sweep = self.run_client(
            "submit", "sweep", CHECKPOINT, f"--layout={SMALL}", f"--composition={SWIGLU}",
            "--seeds=0", "--swap=each-node", "--wait", f"--report={self.path('sweep.json')}",
        )
        self.assertEqual(sweep.status, 0, sweep)
        text = pathlib.Path(self.path("sweep.json")).read_text()
        self.assertIn("provider/default+plugin/example_swiglu:swiglu", text)
        self.assertIn(f"{SWIGLU}+provider/default:swiglu", text)

    def test_a_role_that_is_another_operation_in_a_refiner_stays_the_candidates(self):
        # The norms have no backward, so a full model refuses them: with the node, not the refiner's.
        full = self.run_client(
            "submit", "full-model", CHECKPOINT, f"--layout={SMALL}",
            "--composition=candidate+plugin/example_norm:norm1", "--wait",
        )
        self.assertEqual(full.status, 2, full)
        self.assertIn("plugin/example_norm has no backward of block.", full.error)

    def test_a_plugin_that_no_worker_has_is_said_at_once(self):
        missing = self.replay("candidate+plugin/nobodys:swiglu", "--wait")
        self.assertEqual(missing.status, 2, missing)
        self.assertIn("no worker has the plug-in nobodys; they have: example_norm, example_swiglu",
                      missing.error)
        refused = self.replay("candidate+plugin/other_abi:swiglu", "--wait")
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("refuses it: it plugin.abi_version: is 99", refused.error)
        waiting = self.replay("candidate+plugin/nobodys:swiglu")
        self.assertEqual(waiting.status, 0, waiting)
        job = self.get_job(waiting.out.strip())
        self.assertEqual(job["waiting_reason"]["code"], "CODE_PLUGIN")

    def test_uploads_are_off_unless_the_operator_allows_them(self):
        refused = self.replay(SWIGLU, f"--plugin={EXAMPLES}/swiglu.so", "--wait")
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("this server takes no uploaded plug-ins", refused.error)
        self.assertIn("started with --allow-plugin-uploads", refused.error)


class PluginUploadTest(PluginCase):
    def test_a_client_brings_its_own_where_server_and_worker_allow_it(self):
        self.start_server("--allow-plugin-uploads")
        self.start_worker("a")
        elsewhere = self.replay(SWIGLU, f"--plugin={EXAMPLES}/swiglu.so", "--wait")
        self.assertEqual(elsewhere.status, 2, elsewhere)
        self.assertIn("no worker loads uploaded ones", elsewhere.error)
        self.start_worker("b", "--allow-plugin-uploads")
        good = self.replay(SWIGLU, f"--plugin={EXAMPLES}/swiglu.so", "--backward", "--wait")
        self.assertEqual(good.status, 0, good)
        bad = self.replay("candidate+plugin/other_abi:swiglu",
                          f"--plugin={EXAMPLES}/wrong/other_abi.so", "--wait")
        self.assertEqual(bad.status, 2, bad)
        self.assertIn("abi_version", bad.error)
        # A file that was uploaded as something else is no plug-in, whatever it holds.
        ordinary = self.replay("candidate", f"--inputs={EXAMPLES}/swiglu.so")
        self.assertEqual(ordinary.status, 0, ordinary)
        # The worker has none of them afterwards.
        self.assertIn("no worker has the plug-in example_swiglu", self.replay(SWIGLU, "--wait").error)


class PluginCrashTest(PluginCase):
    def assert_gapless(self, events):
        self.assertEqual([int(each["sequence"]) for each in events], list(range(1, len(events) + 1)))

    def submit(self, composition, *flags):
        ended = self.replay(composition, *flags)
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def test_a_crash_fails_its_task_alone_and_at_once(self):
        self.start_server(LEASE)
        done = self.submit("candidate")
        a = self.start_plugin_worker("a", "wrong/crashes", "swiglu")
        self.assertEqual(self.run_client("jobs", "watch", done).status, 0)
        done_events = self.events_of(done)
        crash = self.submit("candidate+plugin/crashes:swiglu")
        others = [self.submit("candidate") for _ in range(3)]
        self.assertEqual(self.await_end(a), -signal.SIGSEGV, self.log_of(a))
        watched = self.run_client("jobs", "watch", crash)
        self.assertEqual(watched.status, 2, watched)
        self.assertIn("plugin/crashes: crashed with signal 11 (Segmentation fault) in its call for "
                      "block.0/swiglu, forward", watched.error)
        # Another worker does the rest, and one with the same plug-in is not given the task again.
        self.start_worker("b")
        self.start_worker("c", f"--plugins={self.path('plugins-wrong_crashes-swiglu')}")
        for other in others:
            self.assertEqual(self.run_client("jobs", "watch", other).status, 0)
        job = self.get_job(crash)
        self.assertEqual(job["state"], "JOB_STATE_FAILED")
        (attempt,) = job["tasks"][0]["attempts"]
        self.assertEqual(attempt["end"], "ATTEMPT_END_FAILED")
        self.assert_gapless(self.events_of(crash))
        self.assertEqual(self.events_of(done), done_events)
        # What the worker had acknowledged of the crashed attempt is there: golden and provider ran.
        self.assertTrue(any("progress" in each for each in self.events_of(crash)))

    def test_a_plugin_that_ends_the_process_or_hangs_is_named_too(self):
        self.start_server(LEASE)
        for name, flags, message in [
            ("exits", (), "ended the process"),
            ("exits_at_once", (), "ended the process"),
            ("hangs", ("--plugin-call-limit=1",), "did not return within 1s"),
        ]:
            worker = self.start_plugin_worker(name, f"wrong/{name}", flags=flags)
            job = self.submit(f"candidate+plugin/{name}:swiglu")
            self.assertNotEqual(self.await_end(worker), 0, self.log_of(worker))
            watched = self.run_client("jobs", "watch", job)
            self.assertEqual(watched.status, 2, watched)
            self.assertIn(f"plugin/{name}: {message}", watched.error)
            self.assertEqual(len(self.get_job(job)["tasks"][0]["attempts"]), 1)

    def test_a_violation_fails_the_task_and_the_worker_goes_on(self):
        self.start_server()
        self.start_plugin_worker("a", "wrong/overrun", "swiglu")
        wrong = self.replay("candidate+plugin/overrun:swiglu", "--wait")
        self.assertEqual(wrong.status, 2, wrong)
        self.assertIn("block.0/swiglu: plugin/overrun: wrote outside the output, 4 bytes behind its "
                      "end, at (0, 53, 2)", wrong.error)
        self.assertEqual(self.replay(SWIGLU, "--backward", "--wait").status, 0)


class EmbeddedPluginTest(PluginCase):
    """Without a server: what a team does first."""

    def test_a_file_is_enough(self):
        good = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", f"--layout={SMALL}",
            f"--plugin={EXAMPLES}/swiglu.so", f"--composition={SWIGLU}", "--backward",
        )
        self.assertEqual(good.status, 0, good)

    def test_the_composition_of_several_kernels_that_docs_plugin_md_shows(self):
        guide = pathlib.Path("docs/plugin.md").read_text()
        shown = guide.split("are judged at once:\n\n")[1].split("\n\n")[0].replace("\\\n", "")
        program, *words = shlex.split(shown)
        self.assertEqual(program, "plumbline")
        for name in ("head_norms", "swiglu"):
            shutil.copy(f"{EXAMPLES}/{name}.so", self.folder)
        ended = self.run_client(*words, f"--report={self.path('report.json')}")
        self.assertEqual(ended.status, 0, ended)
        (task,) = json.loads(pathlib.Path(self.path("report.json")).read_text())["tasks"]
        ran = {e["name"]: e["implementation"]["actual"] for e in task["block_replay"]["entries"]}
        self.assertEqual(ran["q_norm"], "plugin/example_heads")
        self.assertEqual(ran["k_norm"], "plugin/example_heads")
        self.assertEqual(ran["swiglu"], "plugin/example_swiglu")
        self.assertEqual(ran["q_proj"], "candidate")

    def test_what_a_plugin_prints_does_not_get_among_what_the_command_prints(self):
        printing = self.run_client(*self.wrong("prints"))
        self.assertEqual(printing.status, 0, printing)
        self.assertNotIn("{ printed", printing.out)
        self.assertIn("{ printed when loaded", printing.error)
        self.assertIn("{ printed in a call", printing.error)

    def test_a_crash_is_told_and_the_next_command_works(self):
        crash = self.run_client(
            "submit", "block-replay", "--checkpoint=synthetic:tiny", f"--layout={SMALL}",
            f"--plugin={EXAMPLES}/wrong/crashes.so", "--composition=candidate+plugin/crashes:swiglu",
        )
        self.assertEqual(crash.status, 2, crash)
        self.assertIn("plugin/crashes: crashed with signal 11", crash.error)
        self.test_a_file_is_enough()
        self.assertEqual(len(self.job_names()), 2)

    def wrong(self, name):
        return ("submit", "block-replay", "--checkpoint=synthetic:tiny", f"--layout={SMALL}",
                f"--plugin={EXAMPLES}/wrong/{name}.so", f"--composition=candidate+plugin/{name}:swiglu")

    def test_a_process_that_a_plugin_ends_is_no_success(self):
        ended = self.run_client(*self.wrong("exits_at_once"))
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("plugin/exits_at_once: ended the process in its call for block.0/swiglu",
                      ended.error)
        self.test_a_file_is_enough()

    def test_a_killed_command_does_not_take_the_next_ones_with_it(self):
        killed = self.run_client(*self.wrong("kills"))
        self.assertEqual(killed.status, -signal.SIGKILL, killed)
        for _ in range(2):
            self.test_a_file_is_enough()
        states = [self.get_job(name)["state"] for name in self.job_names()]
        self.assertEqual(sorted(states), ["JOB_STATE_FAILED", *["JOB_STATE_SUCCEEDED"] * 2], states)

    def test_a_hung_command_ends_when_it_is_interrupted(self):
        hung = self.start_client(*self.wrong("hangs"))
        harness.wait_until(lambda: "hangs" in self.log_of(hung).splitlines(), "the call hangs")
        hung.send_signal(signal.SIGINT)
        self.assertEqual(self.await_end(hung), 130, self.log_of(hung))
        self.assertIn("plugin/hangs has not come back from its call for block.0/swiglu, forward",
                      self.log_of(hung))
        self.test_a_file_is_enough()


class CandidateFileTest(PluginCase):
    """The other door: a kernel that lives elsewhere, judged by what it wrote."""

    def replay_file(self, *flags):
        return self.run_client("submit", "block-replay", "--checkpoint=synthetic:tiny",
                               f"--layout={SMALL}", *flags)

    @staticmethod
    def swiglu(gate_up, halves=(0, 1)):
        """round(a * round(SiLU(b))) of a BF16 tensor, in plain Python, as Triton would."""

        def rounded(value):
            (bits,) = struct.unpack("<I", struct.pack("<f", value))
            return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

        def widened(bits):
            return struct.unpack("<f", struct.pack("<I", bits << 16))[0]

        dtype, shape, data = gate_up
        width = shape[-1] // 2
        values = [widened(bits) for bits in struct.unpack(f"<{len(data) // 2}H", data)]
        out = []
        for begin in range(0, len(values), 2 * width):
            a = begin + halves[0] * width
            b = begin + halves[1] * width
            for i in range(width):
                gate = values[b + i]
                silu = widened(rounded(gate / (1.0 + math.exp(-gate))))
                out.append(rounded(values[a + i] * silu))
        return dtype, [*shape[:-1], width], struct.pack(f"<{len(out)}H", *out)

    def test_what_docs_plugin_md_shows(self):
        saved = self.path("provider.safetensors")
        ended = self.replay_file("--composition=provider", f"--save-tensors={saved}")
        self.assertEqual(ended.status, 0, ended)
        tensors = harness.read_safetensors(saved)
        candidate = self.path("candidate.safetensors")
        tensors["node.swiglu"] = self.swiglu(tensors["node.ffn_gate_up"])
        harness.write_safetensors(candidate, tensors)
        good = self.replay_file(f"--candidate={candidate}")
        self.assertEqual(good.status, 0, good)
        self.assertIn("PARTIAL", good.out)
        tensors["node.swiglu"] = self.swiglu(tensors["node.ffn_gate_up"], halves=(1, 0))
        harness.write_safetensors(candidate, tensors)
        wrong = self.replay_file(f"--candidate={candidate}")
        self.assertEqual(wrong.status, 1, wrong)
        self.assertIn("first failure swiglu", wrong.out)


if __name__ == "__main__":
    unittest.main()
