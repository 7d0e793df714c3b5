"""A cable on loopback that a test can cut: bytes are held up in both directions, none is lost."""

import socket
import threading
from contextlib import suppress

from dynavg.engines.fleet.broker import free_port


class Cable:
    """Forwards connections to `port` from a port of its own."""

    def __init__(self, port):
        self.port, self._target = free_port(), port
        self._whole = threading.Event()
        self._whole.set()
        self._sockets = []

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.mend()
        for end in (self._server, *self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self):
        self._whole.clear()

    def mend(self):
        self._whole.set()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, target):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._whole.wait(60)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
