"""A server that restarts, played by a forwarder of connections that goes away and comes back at one port."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading


class Forwarder:
    """Forwards connections to a server until it is stopped, and again from the next start, at one port."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        self._stop = threading.Event()
        listener = socket.create_server(("127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._run, args=(listener, self._stop))
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self, listener: socket.socket, stop: threading.Event) -> None:
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as sockets:
            sockets.enter_context(listener)
            selector.register(listener, selectors.EVENT_READ)
            while not stop.is_set():
                for key, _ in selector.select(0.02):
                    if key.fileobj is listener:
                        pair = listener.accept()[0], socket.create_connection(self.target)
                        for one, other in (pair, pair[::-1]):
                            sockets.enter_context(one)
                            selector.register(one, selectors.EVENT_READ, other)
                    else:
                        self._forward(selector, key)

    def _forward(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        assert isinstance(key.fileobj, socket.socket)
        with contextlib.suppress(OSError):  # also of a pair that was closed in the same round
            data = key.fileobj.recv(1 << 16)
            if data:
                key.data.sendall(data)
                return
        for one in (key.fileobj, key.data):
            with contextlib.suppress(KeyError, ValueError):
                selector.unregister(one)
            one.close()
