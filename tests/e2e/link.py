"""A TCP connection between two programs that a test can cut and mend."""

import socket
import threading


class Link:
    """Listens on a port of its own and forwards to `target`, "HOST:PORT". While it is cut, what was
    sent is held back, on connections old and new, as a network does that loses every packet: nobody
    is told. When it is mended all of it arrives, late and in order."""

    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._whole = threading.Event()
        self._whole.set()
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self._whole.clear()

    def mend(self):
        self._whole.set()

    def close(self):
        self._whole.set()
        self._listener.close()
        for each in self._sockets:
            each.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                self._whole.wait()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        try:
            while True:
                data = source.recv(1 << 16)
                self._whole.wait()
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
        except OSError:
            for each in (source, sink):
                each.close()
