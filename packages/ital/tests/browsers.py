"""Debian's Chromium through Playwright, for tests that look at pages."""

import contextlib
import shutil

import pytest


@contextlib.contextmanager
def chromium():
    """A headless browser; the test is skipped where there is none (``make tools`` installs it)."""
    playwright_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium on this machine (Debian: apt install chromium)")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
