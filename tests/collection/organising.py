"""An organiser at their page, in a real browser: with a mouse, or with the keyboard alone."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reports.browser import Browser


def reach(browser: Browser, selector: str) -> None:
    """Press Tab until an element has the focus."""
    from selenium.webdriver.common.keys import Keys

    browser.until("return document.querySelector(arguments[0])?.checkVisibility()", selector)
    for _ in range(60):
        if browser.ask("return document.activeElement?.matches(arguments[0])", selector):
            return
        browser.press(Keys.TAB)
    raise AssertionError(f"{selector} is not reached")


def enter(browser: Browser, selector: str) -> None:
    """Reach a button by Tab and press Enter."""
    from selenium.webdriver.common.keys import Keys

    reach(browser, selector)
    browser.press(Keys.ENTER)


@dataclass(frozen=True)
class Organiser:
    """Somebody at the organiser's page."""

    browser: Browser
    url: str

    def come(self, token: str) -> None:
        """Open the page, forget who was logged in, and log in by keyboard."""
        self.browser.show("about:blank")
        self.browser.show(f"{self.url}/organiser")
        self.browser.ask("sessionStorage.clear()")
        self.browser.show(f"{self.url}/organiser")
        self.log_in(token)

    def log_in(self, token: str) -> None:
        """Type a token and press Enter."""
        from selenium.webdriver.common.keys import Keys

        reach(self.browser, "#token")
        self.browser.press(Keys.CONTROL + "a")
        self.browser.press(token + Keys.ENTER)

    def sees(self, text: str) -> None:
        """Wait for a text."""
        self.browser.until("return document.body.innerText.includes(arguments[0])", text)

    def does(self, button: str, *, yes: bool = True) -> str:
        """Press a button and answer what is asked, all by keyboard; what was asked."""
        from selenium.webdriver.common.keys import Keys

        enter(self.browser, f"#{button}")
        self.browser.until("return document.querySelector('#confirm').open")
        question: str = self.browser.ask("return document.querySelector('#confirm').innerText")
        if yes:
            enter(self.browser, "#confirm-yes")
        else:
            self.browser.press(Keys.ESCAPE)
        self.browser.until("return !document.querySelector('#confirm').open")
        return question

    def offered(self) -> list[str]:
        """The buttons that can be pressed for the collection as a whole."""
        choices: list[str] = self.browser.ask(
            "return [...document.querySelectorAll('#next button')].filter(one => one.checkVisibility()).map(x => x.id)"
        )
        return choices

    def text(self, selector: str) -> str:
        """What is shown of an element, once it is there."""
        self.browser.until("return document.querySelector(arguments[0])", selector)
        content: str = self.browser.ask("return document.querySelector(arguments[0]).innerText", selector)
        return content


def look(browser: Browser) -> None:
    """No width of a window, no scheme and no paper hides or blurs anything."""
    for width in (1280, 390, 320):
        for scheme in ("light", "dark"):
            browser.dress(width=width, scheme=scheme)
            assert browser.overflow() <= 0, (width, browser.ask("return document.body.innerText.slice(0, 300)"))
            assert browser.faults() == [], (width, scheme)
    browser.dress(width=700, media="print")
    assert browser.overflow() <= 0
    assert not browser.ask("return [...document.querySelectorAll('.acts')].some(one => one.checkVisibility())")
    browser.dress()
