"""Connections to the gRPC port of which nothing comes."""

import contextlib
import resource
import socket
import unittest

from tests.e2e import harness


class ConnectionsTest(harness.Case):
    def test_more_than_the_files_of_the_shell_shut_nobody_out(self):
        usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
        self.start_server()
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (usual, most))
        host, port = self.server.rsplit(":", 1)
        with contextlib.ExitStack() as connections:
            silent = [connections.enter_context(socket.create_connection((host, int(port))))
                      for _ in range(1000)]
            listed = self.run_client("jobs", "list")
            self.assertEqual(listed.status, 0, listed)
            # And they do not stay.
            for connection in silent:
                connection.settimeout(harness.DEADLINE_SECONDS)
                while connection.recv(4096):
                    pass


if __name__ == "__main__":
    unittest.main()
