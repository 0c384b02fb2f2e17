"""A privacy officer at the studio's page, in a real browser, who counts clicks; and the server, to be killed."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.federation.ports import free_ports
from tests.reports.browser import Browser
from tests.waiting import until

#: Seconds to wait for what a command computes on a busy machine.
PATIENCE = 240.0
#: Finds what can be pressed and is seen, by its words, or by the column or key that it stands for.
_FIND = """
const all = [...document.querySelectorAll("button, a, summary, label.choice, [role=button]")];
const seen = all.filter(one => one.checkVisibility()), words = one => one.innerText ?? one.textContent;
return seen.find(one => words(one) === arguments[0]) ?? seen.find(one => words(one).includes(arguments[0]));
"""


@dataclass
class Server:
    """The command as a process of its own, at one port, so that it can be killed and started again."""

    folder: Path
    port: int
    process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start it and return its link."""
        words = ["studio", str(self.folder), "--port", str(self.port), "--no-browser", "--json"]
        self.process = subprocess.Popen([sys.executable, "-m", "graphveil", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        url: str = json.loads(self.process.stdout.readline())["url"]
        return url

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()

    def job(self) -> Path:
        """The folder of the last job."""
        return max((self.folder / ".graphveil-studio" / "jobs").iterdir(), key=lambda path: path.stat().st_mtime)

    def kill_job(self) -> None:
        """End the last job as a system without memory would."""
        running = until(lambda: (self.job() / "running").exists() and (self.job() / "running").read_text())
        os.killpg(int(running), signal.SIGKILL)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server that is not started yet."""
    server = Server(folder, free_ports(1)[0])
    try:
        yield server
    finally:
        server.kill()


@dataclass
class Officer:
    """Somebody at the page; `clicks` counts what they pressed, chose or typed into."""

    browser: Browser
    downloads: Path
    clicks: int = field(default=0)

    def come(self, url: str) -> None:
        """Open the link."""
        behaviour = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self.browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        self.browser.show("about:blank")
        self.browser.complaints()
        self.browser.show(url)
        self.sees("Which data?")

    def presses(self, *buttons: str) -> None:
        """Press what says some words, once it is there, and then what says the next."""
        for words in buttons:
            self.waits("return (() => {" + _FIND + "})()", words)
            self.browser.ask("(() => {" + _FIND + "})().click()", words)
            self.clicks += 1

    def fills(self, selector: str, text: str) -> None:
        """Type into a field, or choose in a list."""
        self.waits("return document.querySelector(arguments[0])?.checkVisibility()", selector)
        script = (
            "const one = document.querySelector(arguments[0]); one.value = arguments[1];"
            "for (const name of ['input', 'change']) one.dispatchEvent(new Event(name, {bubbles: true}))"
        )
        self.browser.ask(script, selector, text)
        self.clicks += 1

    def fills_in(self, label: str, text: str) -> None:
        """The same, by the words beside the field."""
        script = (
            "const label = [...document.querySelectorAll('label')].filter(one => one.checkVisibility())"
            ".find(one => one.textContent === arguments[0]); return label && `#${label.htmlFor}`"
        )
        self.fills(self.waits(script, label), text)

    def types(self, *keys: str) -> None:
        """Press keys, wherever the focus is: an input of files takes none from selenium."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def reaches(self, selector: str, *keys: str) -> None:
        """Press Tab until an element has the focus, then some keys."""
        from selenium.webdriver.common.keys import Keys

        self.waits("return document.querySelector(arguments[0])?.checkVisibility()", selector)
        for _ in range(60):
            if self.browser.ask("return document.activeElement?.matches(arguments[0])", selector):
                self.types(*keys)
                return
            self.types(Keys.TAB)
        raise AssertionError(f"{selector} is not reached")

    def sees(self, *texts: str) -> None:
        """Wait for each of some texts."""
        for text in texts:
            self.waits("return document.body.innerText.includes(arguments[0])", text)

    def waits(self, script: str, *values: object) -> Any:
        """What a script returns, once it is anything but nothing."""
        end = time.monotonic() + PATIENCE
        while not (answer := self.browser.ask(script, *values)) and time.monotonic() < end:
            time.sleep(0.1)
        assert answer, f"{values}: {self.text('body')[-1500:]}"
        return answer

    def text(self, selector: str) -> str:
        """What is shown of an element."""
        text: str = self.browser.ask("return document.querySelector(arguments[0]).innerText", selector)
        return text

    def gets(self, name: str) -> str:
        """The content of a file, once it is downloaded."""
        file = self.downloads / name
        # A browser makes the file first, empty.
        until(lambda: file.exists() and file.stat().st_size > 0)
        return file.read_text(encoding="utf-8")

    def picture(self, file: Path, *, width: int, top: float = 0, height: float = 6000) -> None:
        """Save what the page shows, from its top or from further down, in few colours."""
        seen = self.browser.ask("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": top, "width": width, "height": min(seen - top, height), "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip}
        data = self.browser.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
        Image.open(BytesIO(base64.b64decode(data))).convert("RGB").quantize(256).save(file, optimize=True)


def look(officer: Officer, folder: Path, step: str) -> None:
    """No width, scheme or paper hides anything or breaks WCAG 2.1 AA; each form is kept as a picture."""
    forms: tuple[tuple[str, dict[str, Any]], ...] = (
        ("light", {"width": 1280}),
        ("dark", {"width": 1280, "scheme": "dark"}),
        ("narrow", {"width": 320}),
        ("wide", {"width": 2560}),
        ("print", {"width": 700, "media": "print"}),
    )
    for form, dressed in forms:
        officer.browser.dress(**dressed)
        time.sleep(0.2)
        assert officer.browser.overflow() <= 0, (step, form)
        if form != "print":
            assert officer.browser.faults() == [], (step, form)
        officer.picture(folder / f"{step}-{form}.png", width=dressed["width"])
    officer.browser.dress()
