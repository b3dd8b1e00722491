import dataclasses
import json
import re
import textwrap
from pathlib import Path

import ital_study as study
from ital_study.config import panel, parts, payment, quality, sections
from ital_study.config import questions as _questions
from tests import questions

DOCS = Path(__file__).parents[4] / "docs" / "study"
PAGE = (DOCS / "index.md").read_text(encoding="utf-8")
PANELS = (DOCS / "panels.md").read_text(encoding="utf-8")


def test_the_python_blocks_of_the_page_run():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    namespace = {}
    for block in blocks:
        exec(block, namespace)


def test_every_key_of_the_configuration_is_explained():
    rows = dict(
        re.findall(
            r"^\| (`.*?) \| .*? \| (.*) \|$", PAGE.split("## The configuration")[1], re.MULTILINE
        )
    )
    told = " ".join(rows)
    for field in dataclasses.fields(study.Config):
        assert re.search(rf"`\[*{field.name}(\.de)?\]*`", told), field.name
    for part in (
        sections.Physics,
        sections.Map,
        sections.ConsentForm,
        sections.Instruction,
        sections.Question,
        sections.Completion,
        panel.Panel,
        payment.Payment,
        parts.StudyPart,
    ):
        for field in dataclasses.fields(part):
            assert f"`{field.name}`" in told, field.name
    for part in (_questions.Questionnaire, _questions.Item):
        for field in dataclasses.fields(part):
            assert re.search(rf"^\| .*`\[*…?{field.name}\]*`", PAGE, re.MULTILINE), field.name
    for picture in sections.PICTURES:
        assert f"`{picture}`" in rows["`[[instructions]]` `title`, `text`, `picture`"]


def test_the_questions_of_the_page_are_read_in_both_languages():
    asked, in_german = re.findall(
        r"^```toml\n(.*?)^```$", PAGE.split("### Questions")[1], re.DOTALL | re.MULTILINE
    )[:2]
    bare = questions.bare()
    config = study.parse_config(
        bare + asked + questions.german(study.parse_config(bare)) + in_german
    )
    assert {item.kind for page in config.questionnaires for item in page.items} == {
        "number",
        "text",
        "likert",
    }
    assert config.texts("de").questionnaires[1].items[0].scale[2] == "teils, teils"
    for key in (*_questions.WHEN, *_questions.KEYS):
        assert f'`"{key}"`' in PAGE, key
    assert f"{_questions.LEFT_OUT['longest']} if left out" in PAGE


def test_defaults_on_the_page_are_the_defaults():
    defaults = {field.name: field.default for field in dataclasses.fields(study.Config)}
    assert "| `adaptive` | false |" in PAGE
    assert defaults["adaptive"] is False
    assert "| `robots` | naive and aware |" in PAGE
    assert defaults["robots"] == ()
    for name in ("steps", "warm_up_steps", "candidates", "lr", "beta", "release_after_minutes"):
        assert f"| `{name}` | {defaults[name]:g} |" in PAGE


def test_every_threshold_of_data_quality_is_on_its_page():
    page = (DOCS / "quality.md").read_text(encoding="utf-8")
    for field in dataclasses.fields(quality.Quality):
        shown = json.dumps(field.default)
        assert f"`{field.name} = {shown}`" in page, field.name
    for name in quality.FLAGS:
        assert f"| `{name}` |" in page
    for field in dataclasses.fields(quality.AttentionCheck):
        assert f"{field.name} = " in page


def test_the_configurations_of_panels_are_read_and_their_keys_explained():
    short = study.load_config("short").to_toml()
    rest = re.sub(r"\n\[completion\]\n(.+\n)*", "\n", short)
    blocks = re.findall(r"^ *```toml\n(.*?)^ *```$", PANELS, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    for block in map(textwrap.dedent, blocks):
        end = "" if "[completion]" in block else '\n[completion]\ncode = "X"\n'
        signed = 'links = "signed"\n'
        top = signed if signed in block else ""
        config = study.parse_config(top + rest + block.replace(signed, "") + end)
        plain = (panel.Panel(), "open", payment.Payment())
        assert (config.panel, config.links, config.payment) != plain
    for field in dataclasses.fields(panel.Panel):
        assert f"| `{field.name}` |" in PANELS
