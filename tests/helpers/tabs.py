"""Tabs of Chromium in which one test after another opens the page, which takes a fraction of the time of a new one."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from .page import AT_ONCE
from .server import Server

PATIENCE = 15_000  # milliseconds
VIEWPORT = {"width": 1440, "height": 900}
HAS_FAILED = pytest.StashKey[bool]()
GRADIO = "*/assets/index-*.js"  # the script that starts Gradio's part of the page


class Profiles:
    """Browser profiles that later tests use again, with their tab, but without anything stored by a visitor.

    The browser then has the page's files and keeps what it compiled: opening the page in the same tab takes a quarter
    of the time that it takes in a new profile, and half of that in a new tab.
    """

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.with_gradio = True  # whether Gradio starts in pages that are opened
        self.free: list[Profile] = []
        self.used: list[Profile] = []

    def new_page(
        self,
        viewport: dict[str, int] | None = None,
        color_scheme: str = "light",
        reduced_motion: str = "no-preference",
        own_clock: bool = False,
        **options: Any,
    ) -> Any:
        """A page for a new visitor, which shows a text as soon as it is written.

        A clock that the test installs takes a new profile, since it stays in all tabs.
        """
        profile = None if own_clock else next((each for each in self.free if each.options == options), None)
        if profile is None:
            profile = Profile(self.browser, options, own_clock)
        else:
            self.free.remove(profile)
        self.used.append(profile)
        page = profile.context.new_page() if own_clock else profile.tab()
        if not own_clock:
            blocked = [] if self.with_gradio else [GRADIO]
            profile.devtools.send("Network.setBlockedURLs", {"urls": blocked})
        page.set_viewport_size(viewport or {"width": 1280, "height": 720})
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        page.set_default_timeout(2 * PATIENCE)
        return page

    def keep(self) -> "Profile":
        """The profile of the newest page, which stays when those of the test end."""
        return self.used.pop()

    def end_visits(self, keep_tab: bool) -> None:
        used, self.used = self.used, []
        for profile in reversed(used):
            if profile.own_clock:
                profile.context.close()
            else:
                profile.end_visit(keep_tab)
                self.free.insert(0, profile)


class Profile:
    """A browser context, and the tab in which one test after another opens the page."""

    def __init__(self, browser: Any, options: dict[str, Any], own_clock: bool) -> None:
        self.options = options
        self.own_clock = own_clock
        self.context = browser.new_context(**options)
        self.context.add_init_script(AT_ONCE)
        self.kept: Any = None
        self.listeners: list[tuple[str, Any]] = []

    def tab(self) -> Any:
        if self.kept is None or self.kept.is_closed():
            self.kept = page = self.context.new_page()
            listen = page.on

            def listen_for_one_test(event: str, listener: Any) -> None:
                listen(event, listener)
                self.listeners.append((event, listener))

            self.devtools, self.scripts = self.context.new_cdp_session(page), []
            self.devtools.send("Page.enable")
            self.devtools.send("Network.enable")

            def run_for_one_test(script: str) -> None:
                added = self.devtools.send("Page.addScriptToEvaluateOnNewDocument", {"source": script})
                self.scripts.append(added["identifier"])

            page.on = listen_for_one_test
            page.add_init_script = run_for_one_test
            page.clock.install = refuse_in_kept_tab
        return self.kept

    def end_visit(self, keep_tab: bool) -> None:
        """Leave the page and discard everything from the visit except its files."""
        kept = self.tab()  # one tab stays open, since without any the browser drops its compiled code
        origins = {"{0.scheme}://{0.netloc}".format(urlsplit(page.url)) for page in self.context.pages}
        for page in self.context.pages:
            if page is not kept:
                page.close()
        self.remove_listeners()
        for identifier in self.scripts:
            self.devtools.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})
        self.scripts.clear()
        if keep_tab:
            kept.unroute_all(behavior="ignoreErrors")
            if kept.url.startswith("http"):
                kept.evaluate("sessionStorage.clear()")  # the browser keeps it as long as the tab
            kept.goto("about:blank")
            kept.mouse.move(0, 0)
        else:
            kept.close()
            kept = self.tab()
        for origin in origins:
            if origin.startswith("http"):
                kinds = {"origin": origin, "storageTypes": "local_storage,indexeddb"}
                self.devtools.send("Storage.clearDataForOrigin", kinds)
        self.devtools.send("Page.resetNavigationHistory")
        self.context.clear_cookies()
        self.context.clear_permissions()

    def remove_listeners(self, keep: int = 0) -> None:
        """Remove what listens to the kept tab, except for the first ones."""
        while len(self.listeners) > keep:
            self.kept.remove_listener(*self.listeners.pop())


def refuse_in_kept_tab(*_arguments: Any, **_options: Any) -> None:
    raise AssertionError("This would stay for later tests: open the page with own_clock=True.")


class Complaints:
    """What must not happen on a page: errors, and requests to another host."""

    def __init__(self, page: Any, url: str) -> None:
        self.heard: list[str] = []
        page.on("pageerror", lambda error: None if is_aborted(error) else self.heard.append(str(error)))
        page.on("console", lambda said: self.heard.append(said.text) if is_error(said) else None)
        page.on("request", lambda request: None if is_own(request.url, url) else self.heard.append(request.url))

    def check(self) -> None:
        heard, self.heard = self.heard, []
        assert not heard, heard


def opened_page(profiles: Profiles, url: str, hash: str = "") -> tuple[Any, Complaints]:
    page = profiles.new_page(viewport=VIEWPORT)
    page.set_default_timeout(PATIENCE)
    complaints = Complaints(page, url)
    page.goto(f"{url}/{hash}")
    return page, complaints


class KeptTab:
    """A page for one test after another, which is reset instead of being opened anew: that takes several times as long.

    Tests must undo what the address does not record, such as an open table; after a failed test, the page is reopened.
    """

    with_gradio = False

    def __init__(self, profiles: Profiles, server: Server) -> None:
        self.profiles, self.server = profiles, server
        self.profile: Profile | None = None
        self.page: Any = None

    def visit(self, hash: str = "") -> bool:
        """Open the page, if it is not open already."""
        if self.profile:
            return False
        self.profiles.with_gradio = self.with_gradio
        self.page, self.complaints = opened_page(self.profiles, self.server.url, hash)
        self.profile = self.profiles.keep()
        self.n_listeners = len(self.profile.listeners)
        return True

    def end_test(self, has_failed: bool) -> None:
        if self.profile is None:
            return
        if has_failed:
            self.leave(keep_tab=False)
            return
        self.profile.remove_listeners(keep=self.n_listeners)
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.set_viewport_size(VIEWPORT)
        self.page.emulate_media(reduced_motion="no-preference")
        self.page.mouse.move(0, 0)
        self.reset()
        self.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        self.complaints.check()

    def reset(self) -> None:
        raise NotImplementedError

    def go_to(self, address: str) -> None:
        """Go to an address as Back does. The page asks the server for a text only if the address names another."""
        self.page.evaluate(GO_TO, address)
        self.page.wait_for_function("window.hasArrived")

    def leave(self, keep_tab: bool) -> None:
        if self.profile is not None:
            self.profile.end_visit(keep_tab)
            self.profiles.free.insert(0, self.profile)
            self.profile = None


# The page tells which model is chosen as soon as the server has answered.
GO_TO = """(address) => {
  window.hasArrived = new URL(address, location.href).search === location.search;
  addEventListener("headscope-model", () => (window.hasArrived = true), { once: true });
  history.replaceState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}"""


def is_aborted(error: Any) -> bool:
    """Whether a page error is that of a request which the page itself has ended."""
    return "AbortError" in f"{error.name}: {error}"


def is_error(said: Any) -> bool:
    """Whether the console shows an error other than those that the browser logs for refused, lost or blocked requests,
    and Gradio's own for a connection that it ends, as it does when the page is left.
    """
    expected = ("a status of 4", "ERR_BLOCKED_BY_CLIENT", "Connection errored out", "AbortError")
    return said.type == "error" and not any(words in said.text for words in expected)


def is_own(address: str, url: str) -> bool:
    return address.startswith((f"{url}/", "data:", "blob:"))
