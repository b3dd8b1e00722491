from playwright.sync_api import expect


def arrows(page):
    return page.get_by_role("listbox", name="Arrows to pick from").get_by_role("option")


def test_both_robots_get_the_same_arrow(page, play_server):
    page.goto(play_server)
    expect(page).to_have_url(f"{play_server}/play")
    expect(page.get_by_role("heading", name="Teach two robots")).to_be_visible()
    expect(page.get_by_role("heading", name="Naive robot")).to_be_visible()
    expect(page.get_by_role("heading", name="Teacher-aware robot")).to_be_visible()
    expect(arrows(page)).to_have_count(10)
    arrows(page).nth(3).click()
    expect(page.locator(".choice.chosen")).to_have_count(3)
    page.get_by_role("button", name="Show this arrow").click()
    expect(page.locator(".counter")).to_have_text("Arrow 2 of 4")
    expect(page.locator(".play-charts .chart")).to_have_count(3)


def test_keyboard_machine_and_restart(page, play_server):
    page.goto(play_server)
    arrows(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator(".counter")).to_have_text("Arrow 2 of 4")
    for arrow in (3, 4):
        page.get_by_role("button", name="Let the machine choose").click()
        expect(page.locator(".counter")).to_have_text(f"Arrow {arrow} of 4")
    page.get_by_role("button", name="Let the machine choose").click()
    expect(page.locator(".counter")).to_have_text("All 4 arrows shown")
    expect(arrows(page)).to_have_count(0)
    expect(page.locator(".status")).to_contain_text("closer to the truth")
    last = page.get_by_label("Map", exact=True).locator("option").last.get_attribute("value")
    page.get_by_label("Map", exact=True).select_option(last)
    expect(page.locator(".counter")).to_have_text("Arrow 1 of 4")
    expect(page.get_by_label("Map", exact=True)).to_have_value(last)
    page.get_by_role("button", name="Start again").click()
    expect(arrows(page)).to_have_count(10)


def test_it_fits_and_stores_nothing(page, context, play_server):
    page.goto(play_server)
    arrows(page).first.wait_for()
    size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert size == [1280, 720]
    assert context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
