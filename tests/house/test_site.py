"""The site builds without a warning; its links lead somewhere; a browser opens every page without the network."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
from places import ROOT

pytestmark = pytest.mark.system
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = [360, 800, 1400]
OURSELVES = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data:; report-uri /refused"
LOOK = """<!doctype html><iframe id="frame" style="height: 900px"></iframe><script>
const frame = document.getElementById("frame"), found = {wide: [], bare: [], search: [], first: ""};
const moment = (time) => new Promise((done) => setTimeout(done, time));
const until = async (test) => { for (let k = 0; k < 300 && !test(); k++) await moment(50); return test(); };
const open = (url) => new Promise((done) => { frame.onload = done; frame.src = url; });
(async () => {
  for (const page of PAGES) {
    await open(page);
    const inside = frame.contentDocument;
    const has = (what) => inside.querySelector(what);
    if (has(".math") && !await until(() => has("mjx-container"))) found.bare.push(page);
    for (const width of WIDTHS) {
      frame.style.width = width + "px";
      await moment(30);
      const taken = inside.documentElement.scrollWidth;
      if (taken > width) found.wide.push([page, width, taken]);
    }
  }
  await open("search.html?q=correlation+length");
  await until(() => frame.contentDocument.querySelector("#search-results li a"));
  await moment(1000);
  const links = [...frame.contentDocument.querySelectorAll("#search-results li > a")];
  found.search = links.map((link) => link.textContent);
  await new Promise((done) => { frame.onload = done; links[0].click(); });
  found.first = frame.contentDocument.querySelector("article").textContent;
  fetch("/found", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""
"""A page that opens all others in a frame of each width, then searches, and sends what it found."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all workers; notebooks that ran before are not run again."""
    pytest.importorskip("furo", reason="the site needs the extra docs: python -m pip install '.[docs]'")
    base = tmp_path_factory.getbasetemp()
    built = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with built.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(built)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
    return built


class Links(HTMLParser):
    """Anchors of a page, where it leads, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors, self.leads, self.loads = {""}, set[str](), set[str]()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.leads.add(values["href"])
        elif (tag in ("script", "img") and "src" in values) or tag == "link":
            self.loads.add(values.get("src", values.get("href", "")))


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    links = cache(Links)
    pages, missing = sorted(site.rglob("*.html")), []
    assert len(pages) > 40
    for page in pages:
        for target in links(page).leads | links(page).loads:
            if target.startswith("data:"):  # a picture within the page
                continue
            if target.startswith(("http:", "https:", "mailto:")):
                assert target in links(page).leads, f"{page} loads {target}"
                continue
            name, anchor = urldefrag(target.partition("?")[0] if "#" not in target else target)
            path = (page.parent / unquote(name)).resolve() if name else page
            if not path.exists() or (path.suffix == ".html" and unquote(anchor) not in links(path).anchors):
                missing.append(f"{page.relative_to(site)}: {target}")
    assert not missing


class Server(SimpleHTTPRequestHandler):
    """The site, with pages that may load nothing from elsewhere; what a browser sends is kept."""

    def __init__(self, *args: Any, sent: dict[str, list[Any]], arrived: Event, **named: Any) -> None:
        self.sent, self.arrived = sent, arrived
        super().__init__(*args, **named)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", OURSELVES)
        super().end_headers()

    def do_GET(self) -> None:
        if self.path != "/look":
            return super().do_GET()
        pages = [str(path.relative_to(self.directory)) for path in sorted(Path(self.directory).rglob("*.html"))]
        text = LOOK.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(text)
        return None

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.sent.setdefault(self.path, []).append(json.loads(text))
        self.send_response(204)
        self.end_headers()
        if self.path == "/found":
            self.arrived.set()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def looked(site: Path, tmp_path: Path) -> dict[str, list[Any]]:
    """What a browser sent that opened every page."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    sent: dict[str, list[Any]] = {}
    arrived = Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(site), sent=sent, arrived=arrived))
    Thread(target=server.serve_forever, daemon=True).start()
    quiet = ["quic", "background-networking", "component-update", "sync", "gpu"]
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet),
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={tmp_path / 'profile'}",
        "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/look",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            assert arrived.wait(120), f"the browser sent only {sent}"
        finally:
            browser.terminate()
            browser.wait(20)
            server.shutdown()
            server.server_close()
    return sent


@pytest.mark.browser
def test_a_browser_shows_every_page_without_the_network(looked: dict[str, list[Any]]) -> None:
    found = looked["/found"][0]
    assert "/refused" not in looked  # nothing was asked for elsewhere
    assert found["bare"] == []  # formulas are set
    assert found["wide"] == []  # no page is wider than the window
    assert any("Errors and autocorrelation" in title for title in found["search"])
    assert "correlation length" in found["first"].lower()
