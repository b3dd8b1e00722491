"""Every word of participants' pages comes from a language file, as far as the sources tell."""

import re
from importlib import resources

import pytest

from ital_study.config.languages import shipped_words

PAGES = resources.files("ital_study") / "pages"


def scripts(name, seen=()):
    """A script and those that it imports."""
    if name in seen:
        return seen
    source = (PAGES / "static" / name).read_text("utf-8")
    for imported in re.findall(r'from "\./([a-z]+\.js)"', source):
        seen = scripts(imported, (*seen, name))
    return (*seen, name) if name not in seen else seen


# Of participants' pages; keys.js names keys.
SCRIPTS = sorted(set(scripts("participant.js")) - {"keys.js"})
# Pages of researchers show it; those of participants say it in words of their own.
NO_ANSWER = "The server could not answer this request."
SOURCES = {name: (PAGES / "static" / name).read_text("utf-8") for name in SCRIPTS}
HTML = "".join((PAGES / name).read_text("utf-8") for name in ("participant.html", "problem.html"))
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`')


def literals(source):
    """The texts between quotes, without comments and without what is filled in."""
    code = re.sub(r"^\s*(//|/\*|\*).*$|\s// .*$", "", source, flags=re.MULTILINE)
    return [re.sub(r"\$\{[^}]*\}", "0", one or other) for one, other in LITERAL.findall(code)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_has_a_sentence_of_its_own(name):
    sentence = re.compile(r"^[A-Z★][a-z’']+( |$)|[a-z]{2}[.?!…;]( |$)|[a-z]{2}, [a-z]+ [a-z]{2}")
    found = {text for text in literals(SOURCES[name]) if sentence.search(text)}
    assert found <= {NO_ANSWER}


def test_the_page_has_no_text_of_its_own():
    shown = re.sub(r"<[^>]*>|\{[a-z_.]+\}", " ", HTML)
    assert re.findall(r"[A-Za-z]+", shown) == []
    assert re.findall(r'(?:aria-label|title|placeholder|alt)="[^"]+"', HTML) == []


def test_words_that_pages_ask_for_exist_and_all_words_are_used():
    server = (resources.files("ital_study") / "server" / "_pages.py").read_text("utf-8")
    english, everything = shipped_words("en"), "\n".join([*SOURCES.values(), HTML, server])
    asked = set(re.findall(r"\bt\(\s*\"([^\"]+)\"", everything)) | set(
        re.findall(r"data-word(?:-label)?=\"([^\"]+)\"", HTML)
    )
    assert asked <= english.keys()
    families = set(re.findall(r"`([a-z_]+\.[a-z_]*)\$\{", everything))
    families |= {f"{area}." for area in re.findall(r'(?:farewell|early)\("([a-z_]+)"', everything)}
    for key in english.keys() - {"name", "direction"}:
        named = any(f'"{name}"' in everything for name in (key, key.removesuffix("_caption")))
        assert (
            named
            or f"{{{key}}}" in everything
            or any(key.startswith(family) for family in families)
        ), key


def test_every_refusal_has_a_word():
    server = resources.files("ital_study") / "server"
    codes = set()
    for file in server.iterdir():
        if file.name.endswith(".py") and file.name not in ("_admin.py", "_learner.py", "_play.py"):
            source = file.read_text("utf-8")
            codes |= set(
                re.findall(r"(?:Refused|_problem)\(\s*(?:request, )?\d{3},\s*\"([a-z_]+)\"", source)
            )
    assert {"unknown_code", "out_of_order", "try_again"} <= codes
    for code in codes:
        assert f"refused.{code}" in shipped_words("en"), code
