"""A real Firefox for tests of pages, driven by Marionette, which is part of it: no driver beside it is needed.

Marionette's messages are JSON behind their length: [0, number, command, parameters]; back, [1, number, error, value].
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.reports.browser import AXE, PATIENCE, RULES, Browser

#: Nothing is asked of anybody but the page's own server, and Marionette takes a port that is free.
PREFERENCES = {
    "marionette.port": 0,
    "remote.active-protocols": 2,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#disabled",
    "toolkit.telemetry.server": "data:,",
}
SCHEME = "prefers-color-scheme"
#: Of Firefox itself, which shows the page.
DRESS = f"""
const [width, scheme] = arguments;
Services.prefs.setIntPref("layout.css.{SCHEME}.content-override", scheme === "dark" ? 0 : 1);
const page = gBrowser.selectedBrowser;
page.style.minWidth = page.style.maxWidth = `${{width}}px`;
"""
FAULTS = """
const [rules, done] = arguments;
axe.run({ runOnly: rules }).then(
  ({ violations }) => done(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`)),
  (error) => done([String(error)]),
);
"""


class Marionette:
    """The other end of Firefox's own wire."""

    def __init__(self, port: int) -> None:
        self._wire = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._file, self._numbers = self._wire.makefile("rb"), count(1)
        self._read()
        self.tell("WebDriver:NewSession", strictFileInteractability=False)

    def tell(self, command: str, **parameters: object) -> Any:
        """Give a command; what it returns.

        Raises:
            AssertionError: where it fails, with what Firefox says.
        """
        told = json.dumps([0, next(self._numbers), command, parameters]).encode()
        self._wire.sendall(b"%d:%s" % (len(told), told))
        _, _, error, value = self._read()
        assert error is None, f"{command}: {error}"
        return value

    def close(self) -> None:
        self._file.close()
        self._wire.close()

    def _read(self) -> Any:
        length = b""
        while (byte := self._file.read(1)) != b":":
            assert byte, "Firefox has gone"
            length += byte
        return json.loads(self._file.read(int(length)))


@dataclass(frozen=True)
class Firefox(Browser):
    """One window of Firefox, as far as it is asked the same as Chromium."""

    driver: Marionette

    def show(
        self, page: Path | str, *, width: int = 1280, scheme: str = "light", media: str = "", script: bool = True
    ) -> None:
        """Load a page at a width, in a colour scheme; `script` is Chromium's alone."""
        assert script
        self.dress(width=width, scheme=scheme, media=media)
        self.driver.tell("WebDriver:Navigate", url=page if isinstance(page, str) else page.as_uri())

    def dress(self, *, width: int = 1280, scheme: str = "light", media: str = "") -> None:
        """Show the page that is there at another width, in another colour scheme; `media` is Chromium's alone."""
        assert media == ""
        self.driver.tell("WebDriver:SetWindowRect", width=1280, height=900)
        self.driver.tell("Marionette:SetContext", value="chrome")
        # Of the page and not of the window, which Firefox makes no narrower than its own buttons.
        self.driver.tell("WebDriver:ExecuteScript", script=DRESS, args=[width, scheme])
        self.driver.tell("Marionette:SetContext", value="content")
        self.until(
            "return innerWidth === arguments[0] && matchMedia(arguments[1]).matches", width, f"({SCHEME}: {scheme})"
        )

    def faults(self) -> list[str]:
        """What breaks WCAG 2.1 AA in the page as it is shown, each with the first element concerned."""
        script = f"{AXE.read_text(encoding='utf-8')}\n;{FAULTS}"
        found: list[str] = self.driver.tell("WebDriver:ExecuteAsyncScript", script=script, args=[RULES])["value"]
        return found

    def ask(self, script: str, *values: object) -> Any:
        """What a script in the page returns."""
        return self.driver.tell("WebDriver:ExecuteScript", script=script, args=values)["value"]

    def press(self, *keys: str) -> None:
        """Type into what has the focus."""
        # "\n" is typed as it is; a person presses Enter.
        (element,) = self.driver.tell("WebDriver:GetActiveElement")["value"].values()
        self.driver.tell("WebDriver:ElementSendKeys", id=element, text="".join(keys).replace("\n", "\ue007"))


@contextmanager
def started_firefox(profile: Path) -> Iterator[Firefox]:
    """A Firefox with a profile of its own; the test is skipped where there is none."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox here: apt-get install firefox-esr")
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    words = [
        program,
        "--headless",
        "--marionette",
        "--no-remote",
        "-remote-allow-system-access",
        "--profile",
        str(profile),
    ]
    with (profile / "said").open("wb") as said, subprocess.Popen(words, stdout=said, stderr=said) as process:
        try:
            driver = Marionette(_port(profile))
            yield Firefox(driver)
            driver.tell("Marionette:Quit", flags=["eForceQuit"])
            driver.close()
        finally:
            process.terminate()


def _port(profile: Path) -> int:
    """The port that Firefox took, as soon as it has said so."""
    place, end = profile / "MarionetteActivePort", time.monotonic() + PATIENCE
    while not (place.exists() and place.read_text().strip()):
        assert time.monotonic() < end, (profile / "said").read_text()
        time.sleep(0.05)
    return int(place.read_text())
