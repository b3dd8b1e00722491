from playwright.sync_api import expect


def arrows(page):
    return page.get_by_role("listbox", name="Arrows to pick from").get_by_role("option")


def test_all_robots_get_the_same_arrow(page, play_server):
    page.goto(play_server)
    expect(page).to_have_url(f"{play_server}/play")
    expect(page.get_by_role("heading", name="Teach three robots")).to_be_visible()
    expect(page.get_by_role("heading", name="Naive robot")).to_be_visible()
    expect(page.get_by_role("heading", name="Naive, longer steps")).to_be_visible()
    expect(page.get_by_role("heading", name="Teacher-aware robot")).to_be_visible()
    expect(arrows(page)).to_have_count(10)
    arrows(page).nth(3).click()
    expect(page.locator(".choice.chosen")).to_have_count(4)
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
    expect(page.locator(".status")).to_contain_text("Closest to the truth")
    last = page.get_by_label("Map", exact=True).locator("option").last.get_attribute("value")
    page.get_by_label("Map", exact=True).select_option(last)
    expect(page.locator(".counter")).to_have_text("Arrow 1 of 4")
    expect(page.get_by_label("Map", exact=True)).to_have_value(last)
    page.get_by_role("button", name="Start again").click()
    expect(arrows(page)).to_have_count(10)


def test_it_fits_and_stores_nothing(page, context, play_server):
    page.goto(play_server)
    arrows(page).first.wait_for()
    size = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size == [1280, 720]
    assert context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0


def test_the_machines_pick_after_mine(page, play_server):
    page.goto(play_server)
    arrows(page).nth(3).click()
    page.get_by_role("button", name="Show this arrow").click()
    expect(page.locator(".counter")).to_have_text("Arrow 2 of 4")
    expect(page.locator(".hint")).to_be_empty()
    page.get_by_label("Show the machine's pick after mine").check()
    arrows(page).nth(3).click()
    page.get_by_role("button", name="Show this arrow").click()
    expect(page.locator(".hint")).to_contain_text("The machine would have picked")
    expect(page.locator(".counter")).to_have_text("Arrow 3 of 4")
    page.get_by_role("button", name="Let the machine choose").click()
    expect(page.locator(".hint")).to_be_empty()


def test_the_machine_plays_to_the_end_and_can_be_stopped(page, play_server):
    page.goto(play_server)
    arrows(page).first.wait_for()
    page.get_by_role("button", name="Play to the end").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Play to the end")).to_be_enabled()
    expect(page.locator(".counter")).not_to_have_text("All 4 arrows shown")
    page.get_by_role("button", name="Play to the end").click()
    expect(page.locator(".counter")).to_have_text("All 4 arrows shown")
    expect(page.get_by_role("button", name="Play to the end")).to_be_disabled()
