"""A real browser for tests of pages: Debian's chromium, driven by selenium, without a profile of anybody's."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "axe" / "axe.min.js"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
#: Seconds to wait for what a page makes of itself.
PATIENCE = 20.0
#: Rules of WCAG 2.1, levels A and AA.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")


@dataclass(frozen=True)
class Browser:
    """One window."""

    driver: Any

    def show(
        self, page: Path | str, *, width: int = 1280, scheme: str = "light", media: str = "", script: bool = True
    ) -> None:
        """Load a page of a disk or of an address at a width, in a colour scheme, for the screen or for paper."""
        self.dress(width=width, scheme=scheme, media=media)
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.driver.get(page if isinstance(page, str) else page.as_uri())

    def dress(self, *, width: int = 1280, scheme: str = "light", media: str = "") -> None:
        """Show the page that is there at another width, in another colour scheme, for the screen or for paper."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features, "media": media})

    def until(self, script: str, *values: object) -> Any:
        """What a script returns, once it is anything but nothing: on a busy machine that may be later."""
        end = time.monotonic() + PATIENCE
        while not (answer := self.ask(script, *values)) and time.monotonic() < end:
            time.sleep(0.03)
        assert answer, f"{script} {values}: {self.ask('return document.body.innerText')}"
        return answer

    def ask(self, script: str, *values: object) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *values)

    def press(self, *keys: str) -> None:
        """Type into what has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def tabs(self) -> list[str]:
        """The names of the page's tabs."""
        names: list[str] = self.ask("return [...document.querySelectorAll('[role=tab]')].map(tab => tab.textContent)")
        return names

    def open_tab(self, name: str) -> None:
        """Select one tab, once the page has made it: on a busy machine the first question may come before."""
        end = time.monotonic() + PATIENCE
        while name not in self.tabs() and time.monotonic() < end:
            time.sleep(0.05)
        self.ask(
            "[...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent === arguments[0]).click()", name
        )

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        wider: int = self.ask("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return wider

    def faults(self) -> list[str]:
        """What breaks WCAG 2.1 AA in the page as it is shown, each with the first element concerned."""
        if not self.ask("return typeof axe !== 'undefined'"):
            self.driver.execute_script(AXE.read_text(encoding="utf-8"))
        violations = self.driver.execute_async_script(
            "const done = arguments[1]; axe.run({runOnly: arguments[0]}).then(result => done(result.violations))", RULES
        )
        return [f"{violation['id']}: {violation['nodes'][0]['html'][:120]}" for violation in violations]

    def complaints(self) -> list[str]:
        """What the page wrote to the console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that was asked for since it was last asked, but for those that the page's policy stopped."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        named = [(event["method"], event["params"]) for event in events]
        stopped = {
            params["requestId"]
            for name, params in named
            if name == "Network.loadingFailed" and params.get("blockedReason") == "csp"
        }
        sent = [params for name, params in named if name == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent if params["requestId"] not in stopped]


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_script_timeout(30)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
