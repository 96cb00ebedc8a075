"""A small Hugging Face Hub on this machine: repositories, LFS uploads, commits and downloads."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "c0ffee" + 34 * "0"


class LocalHub(ThreadingHTTPServer):
    """Files by repository and name, of one commit; uploads need the token."""

    def __init__(self, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.token = token
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.objects: dict[str, bytes] = {}
        self.paths: list[str] = []

    @property
    def address(self) -> str:
        """What HF_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def local_hub(token: str) -> Iterator[LocalHub]:
    """A hub that serves while this block runs."""
    with LocalHub(token) as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    server: LocalHub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        content = self._body()
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._answer(401, {"error": "Invalid username or password."})
        elif self.path == "/api/repos/create":
            wanted = json.loads(content)
            name = f"{wanted['organization']}/{wanted['name']}"
            is_new = name not in self.server.repositories
            self.server.repositories.setdefault(name, {})
            url = {"url": f"{self.server.address}/{name}", "name": name}
            self._answer(200 if is_new else 409, url)
        elif self.path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/models/(.+)/preupload/main", self.path):
            self._answer(200, {"files": [_mode(file) for file in json.loads(content)["files"]]})
        elif self.path.endswith(".git/info/lfs/objects/batch"):
            wanted = json.loads(content)["objects"]
            self._answer(200, {"transfer": "basic", "objects": [self._action(o) for o in wanted]})
        elif found := re.fullmatch(r"/api/models/(.+)/commit/main", self.path):
            self._commit(found[1], [json.loads(line) for line in content.splitlines()])
        else:
            self._answer(404, {"error": f"no {self.path}"})

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.removeprefix("/lfs/")
        is_whole = sha256(content).hexdigest() == oid
        if is_whole:
            self.server.objects[oid] = content
        self._answer(200 if is_whole else 400, {})

    def do_GET(self) -> None:
        self._file(with_content=True)

    def do_HEAD(self) -> None:
        self._file(with_content=False)

    def _action(self, wanted: dict[str, Any]) -> dict[str, Any]:
        upload = {"href": f"{self.server.address}/lfs/{wanted['oid']}", "header": {}}
        return {"oid": wanted["oid"], "size": wanted["size"], "actions": {"upload": upload}}

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        files = self.server.repositories[name]
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
        url = f"{self.server.address}/{name}/commit/{COMMIT}"
        self._answer(200, {"commitUrl": url, "commitOid": COMMIT, "success": True})

    def _file(self, with_content: bool) -> None:
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", self.path)
        content = found and self.server.repositories.get(found[1], {}).get(found[2])
        if content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def _body(self) -> bytes:
        self.server.paths.append(self.path)
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def _mode(file: dict[str, Any]) -> dict[str, Any]:
    """As the Hub has it: text goes into the commit, model files are uploaded by LFS."""
    mode = "lfs" if file["path"].endswith(".safetensors") else "regular"
    return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
