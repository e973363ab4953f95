"""A page that runs in Debian's Chromium, and what it found."""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required",
]  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    """Serves files by name, with ranges, as a player needs them; takes one result."""

    protocol_version = "HTTP/1.1"

    def __init__(self, files, found, *arguments):
        self.files = files
        self.found = found
        super().__init__(*arguments)

    def do_GET(self):
        if self.path not in self.files:
            self.send_error(404)
            return
        content_type, data = self.files[self.path]
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(asked[1]) if asked else 0
        last = min(int(asked[2] or len(data) - 1), len(data) - 1) if asked else len(data) - 1
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", content_type)
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        try:
            self.wfile.write(data[first : last + 1])
        except ConnectionError:
            pass  # A player that has what it wants goes away.

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.found.set(json.loads(body))

    def log_message(self, *_):
        pass


class _Found:
    def __init__(self):
        self._event = threading.Event()
        self._value = None

    def set(self, value):
        self._value = value
        self._event.set()

    def wait(self, seconds):
        return self._value if self._event.wait(seconds) else None


def run_page(script, files, seconds=60):
    """What `script`, the body of an async function, returns in a page that can fetch `files`, {path: (type, bytes)}.

    None: it has not returned within `seconds`.
    """
    page = f"""<!doctype html><meta charset=utf-8><body><script>
    (async () => {{
      let found;
      try {{ found = await (async () => {{ {script} }})(); }}
      catch (error) {{ found = {{error: String(error)}}; }}
      await fetch('/found', {{method: 'POST', body: JSON.stringify(found)}});
    }})();
    </script>"""
    found = _Found()
    served = {**files, "/": ("text/html", page.encode())}
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, served, found)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile = tempfile.mkdtemp(prefix="plumbline-chromium-", dir="/tmp")
    browser = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, HOME=profile),
    )
    try:
        return found.wait(seconds)
    finally:
        browser.kill()
        browser.wait()
        server.shutdown()
        shutil.rmtree(profile, ignore_errors=True)
