"""A small web server whose faults are chosen by the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What is served, and what goes wrong: one fault per request, until there are none left.

    A fault is a status to answer with, or ("cut", n): stop after n bytes of the body.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[int | tuple[str, int]] = field(default_factory=list)
    ranges: bool = True
    tag: str | None = '"v1"'
    length: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


@contextmanager
def serve(site: Site) -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.requests.append((self.path, wanted))
            fault = site.faults.pop(0) if site.faults else None
            if isinstance(fault, int):
                self.send_error(fault)
                return
            if self.path not in site.files:
                self.send_error(404)
                return
            body = site.files[self.path]
            self._send(body, wanted, fault)

        def _send(self, body: bytes, wanted: str | None, fault: tuple[str, int] | None) -> None:
            start = 0
            same = self.headers.get("If-Range") in (None, site.tag)
            if wanted and site.ranges and same:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            if site.tag:
                self.send_header("ETag", site.tag)
            if site.length:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            part = body[start:]
            self.wfile.write(part if fault is None else part[: fault[1]])

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler
