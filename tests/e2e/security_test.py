"""What a person reads who set TLS, an address or a name up wrongly; and what a log says of clients that did."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import unittest

from tests.e2e import harness


class SecurityTest(harness.Case):
    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def make_certificate(self, name, *key):
        """NAME.pem and NAME.key, signed by itself, for localhost."""
        self.openssl(
            *["req", "-x509", "-newkey", *(key or ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"])],
            *["-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2"],
            *["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        )

    def tls_flags(self, name):
        return [f"--tls-cert={self.path(name + '.pem')}", f"--tls-key={self.path(name + '.key')}"]

    def refusal(self, *flags):
        """What a server says that does not start, which is one line."""
        ended = subprocess.run(
            [harness.SERVER, f"--data-dir={self.path('refused')}", *flags],
            capture_output=True,
            text=True,
            timeout=harness.DEADLINE_SECONDS,
            check=False,
        )
        self.assertNotEqual(ended.returncode, 0)
        self.assertEqual(ended.stdout, "")
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        return ended.stderr.strip()

    def test_a_server_that_cannot_be_reached_makes_no_store_and_keeps_what_is_there(self):
        data = pathlib.Path(self.path("refused"))
        missing = "unix:" + self.path("none/socket")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for flag in ["listen", "http", "health"]:
                free = [f"--{other}=127.0.0.1:0" for other in ["listen", "http"] if other != flag]
                self.refusal(f"--{flag}={address}", *free)
                self.assertFalse(data.exists(), flag)
                self.refusal(f"--{flag}=no-such-host.invalid:1", *free)
                self.assertFalse(data.exists(), flag)
            self.refusal(f"--listen={missing}", "--http=127.0.0.1:0")
            self.assertFalse(data.exists())
        refusal = self.refusal(f"--listen={address}", f"--http={address}")
        self.assertRegex(refusal, "http: .* is another address of this process")
        self.assertFalse(data.exists())

    def test_what_is_in_a_data_folder_stays_when_a_server_cannot_be_reached(self):
        data = pathlib.Path(self.path("refused"))
        data.mkdir()
        data.joinpath("mine").write_text("mine")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"--http=127.0.0.1:{taken.getsockname()[1]}"
            self.refusal("--listen=127.0.0.1:0", address)
            self.assertEqual(os.listdir(data), ["mine"])
            # The socket's folder is still to be made.
            server = self.start_server(listen=f"unix:{self.path('server')}/socket")
            server.terminate()
            self.assertEqual(server.wait(), 0)
            shutil.copytree(self.path("server/store"), data / "store")
            self.refusal("--listen=127.0.0.1:0", address)
            self.assertIn("CURRENT", os.listdir(data / "store"))
            self.assertIn("mine", os.listdir(data))

    def test_a_worker_that_cannot_be_reached_makes_no_folder(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for flag, other in [("metrics", "grpc"), ("grpc", "metrics")]:
                ended = subprocess.run(
                    [harness.WORKER, "--server=127.0.0.1:1", f"--state-dir={self.path('w')}",
                     f"--{flag}={address}", f"--{other}=127.0.0.1:0"],
                    capture_output=True, text=True, timeout=harness.DEADLINE_SECONDS, check=False,
                )  # fmt: skip
                self.assertIn("another process listens there", ended.stderr)
                self.assertFalse(os.path.exists(self.path("w")))

    def test_a_server_that_cannot_start_says_why_in_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for flag in ["listen", "http", "health"]:
                free = [f"--{other}=127.0.0.1:0" for other in ["listen", "http"] if other != flag]
                self.assertEqual(
                    self.refusal(f"--{flag}={address}", *free),
                    f"plumbline-server: cannot listen on {address}: another process listens there",
                )
                self.assertRegex(self.refusal(f"--{flag}=foo", *free), f"{flag}: \"foo\" .*accepted: ")
        self.make_certificate("weak", "rsa:1024")
        self.assertEqual(
            self.refusal(*self.tls_flags("weak")),
            f"plumbline-server: tls-cert: the certificate of CN=weak in {self.path('weak.pem')} has "
            "an RSA key of 1024 bits; accepted: RSA of 2048 to 16384 bits, EC on P-256, P-384 or "
            "P-521, or Ed25519",
        )
        self.make_certificate("open")
        os.chmod(self.path("open.key"), 0o666)
        refusal = self.refusal(*self.tls_flags("open"))
        self.assertEqual(refusal.count("accepted: "), 1, refusal)
        self.assertIn("chmod 600", refusal)

    def unwritable_ready_files(self):
        """(FILE, what is said of it) of files that no program can write."""
        missing = self.path("none/ready")
        return [
            (self.folder, "is there and is no regular file; accepted: a file's path"),
            (missing, "cannot create: .*; accepted: a file in a folder that is there"),
            ("/proc/ready", "cannot create: .*; accepted: a file in a folder that is there"),
        ]

    def test_a_ready_file_that_cannot_be_written_is_refused_before_anything_is_begun(self):
        data = pathlib.Path(self.path("refused"))
        for path, said in self.unwritable_ready_files():
            refusal = self.refusal(f"--ready-file={path}")
            self.assertRegex(refusal, f"^plumbline-server: ready-file: {path}:? {said}$")
            # Neither was a store made nor, before it, a port listened on.
            self.assertFalse(data.exists())

    def test_a_worker_that_cannot_start_says_why_in_one_line(self):
        refused = [(f"--{flag}=foo", f'{flag}: "foo" .*accepted: .*') for flag in ["grpc", "metrics"]]
        refused += [
            (f"--ready-file={path}", f"ready-file: {path}:? {said}")
            for path, said in self.unwritable_ready_files()
        ]
        for flag, said in refused:
            ended = subprocess.run(
                [harness.WORKER, "--server=127.0.0.1:1", f"--state-dir={self.path('w')}", flag],
                capture_output=True,
                text=True,
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
            self.assertEqual(ended.returncode, 2, ended)
            self.assertRegex(ended.stderr, f"^plumbline-worker: {said}\n$")

    def test_clients_learn_at_once_why_there_is_no_connection(self):
        self.make_certificate("server")
        self.make_certificate("stranger")
        process = self.start_server(
            *self.tls_flags("server"), "--log-format=json", listen="127.0.0.1:0"
        )
        host, port = self.server.rsplit(":", 1)
        self.server = f"localhost:{port}"
        self.assertEqual(self.run_client("jobs", "list", f"--ca={self.path('server.pem')}").status, 0)

        def refusal(*flags):
            ended = self.run_client("jobs", "list", *flags)
            self.assertEqual(ended.status, 2, ended)
            return ended.error

        untrusted = refusal(f"--ca={self.path('stranger.pem')}")
        self.assertIn(self.path("stranger.pem"), untrusted)
        self.assertIn("CN=server", untrusted)
        self.assertIn("not trusted", untrusted)
        self.assertIn("speaks TLS", refusal())
        # A worker waits, and says what for.
        worker = self.start(*self.worker_command("one", f"--ca={self.path('stranger.pem')}"))
        harness.wait_until(
            lambda: "not trusted" in pathlib.Path(worker.log_path).read_text(), "the worker's line"
        )
        self.assertIsNone(worker.poll())
        # Whoever connects wrongly writes lines of the log's own form into it, of which
        # grpc_log_test counts how many.
        for _ in range(3):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b"no TLS\r\n")
                connection.settimeout(harness.DEADLINE_SECONDS)
                with contextlib.suppress(ConnectionResetError):
                    while connection.recv(4096):
                        pass
        lines = pathlib.Path(process.log_path).read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        of_grpc = [entry for entry in entries if entry["message"] == "gRPC"]
        self.assertTrue(of_grpc)
        self.assertEqual({entry["level"] for entry in of_grpc}, {"info"})

    def test_a_client_says_that_there_is_no_tls(self):
        self.make_certificate("server")
        self.start_server()
        ended = self.run_client("jobs", "list", f"--ca={self.path('server.pem')}")
        self.assertEqual(ended.status, 2, ended)
        self.assertIn("does not speak TLS", ended.error)


if __name__ == "__main__":
    unittest.main()
