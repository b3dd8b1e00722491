"""The picture in reports shows the current page."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

TOOL = Path(__file__).parents[4] / "tools" / "interface.py"


def styles_and_elements(text):
    root = ET.fromstring(text)
    style, *_ = (each.text for each in root.iter() if each.tag.endswith("}style"))
    shown = {(each.tag.rpartition("}")[2], each.get("class")) for each in root.iter()}
    return set(style.split("\n")), shown


def test_the_picture_in_reports_is_of_the_page_as_it_is(person):
    """If this fails, the page has changed: run python tools/interface.py for a new picture."""
    spec = importlib.util.spec_from_file_location("interface", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    person.page.emulate_media(reduced_motion="reduce")
    person.to_teaching("picture")
    person.pick(tool.PICKED)
    rules, elements = styles_and_elements(tool.as_svg(person.page))
    kept_rules, kept_elements = styles_and_elements(tool.SHIPPED.read_text("utf-8"))
    assert not [rule for rule in rules ^ kept_rules if "badge" not in rule]  # of the practice
    assert kept_elements <= elements
