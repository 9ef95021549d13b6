"A browser for tests: Chromium without a window, driven over its DevTools protocol."
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websocket

QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*")


def chromium() -> str:
    "The program, from RLM_CHROMIUM or the path; without it, the test is skipped."
    named = os.environ.get("RLM_CHROMIUM")
    found = next((p for p in map(shutil.which, [named] if named else ["chromium", "chromium-browser", "google-chrome"]) if p), None)
    if found is None and named:
        pytest.fail(f"RLM_CHROMIUM is {named!r}, which is not there")
    if found is None:
        pytest.skip("needs a browser: install chromium, or set RLM_CHROMIUM to one")
    return found


class Tab:
    "One page, and all that it said."

    def __init__(self, address: str) -> None:
        self.socket = websocket.create_connection(address, suppress_origin=True, timeout=30)
        self.sent, self.events = 0, list[dict[str, Any]]()
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        "One command, and its result."
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.sent:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def js(self, code: str) -> Any:
        "The value of an expression in the page."
        found = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, code: str, seconds: float = 20) -> None:
        "Wait until an expression is true."
        deadline = time.monotonic() + seconds
        while not self.js(f"Boolean({code})"):
            assert time.monotonic() < deadline, f"{code} did not come true: {self.js('document.body.innerText')[:500]}"
            time.sleep(0.03)

    def said(self) -> list[str]:
        "Errors and warnings of the page, and what its policy refused; no advice."
        self.js("1")
        return [json.dumps(e["params"]) for e in self.events if e["method"] == "Runtime.exceptionThrown"
                or e["params"].get("type") == "error" or e["params"].get("entry", {"level": "verbose"})["level"] != "verbose"]

    def asked(self) -> list[str]:
        "Every address that the page asked for."
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, path: Path) -> None:
        "What it looks like, as a PNG."
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browsing(size: str = "1360,1100") -> Iterator[Tab]:
    "A fresh browser with an empty page."
    with tempfile.TemporaryDirectory(prefix="rlm-browser-", ignore_cleanup_errors=True) as home:
        command = [chromium(), *QUIET, f"--window-size={size}", f"--user-data-dir={home}", "about:blank"]
        program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert program.stderr is not None
        try:
            port = next(line for line in program.stderr if "DevTools listening on" in line).rsplit(":", 1)[1].split("/")[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = [t for t in json.load(answer) if t["type"] == "page"]
            tab = Tab(pages[0]["webSocketDebuggerUrl"])
            yield tab
            tab.socket.close()
        finally:
            program.terminate()
            program.wait(20)
            program.stderr.close()
