"""Sections of the report that other packages declare."""

import json

from tests import plugged

CODE = '''
def remarks(context):
    """A section of the report."""
    return [{"kind": "paragraph", "words": "remarked elsewhere"}]


def section():
    from ital_paper.report.sections import Section

    return Section("Remarks", "remarks", remarks)


def __getattr__(name):
    if name == "declared":
        return section()
    raise AttributeError(name)
'''
ENTRIES = """[ital.sections]
remarks = made_up:declared
lost = made_up:nothing
"""
LIST_SECTIONS = """
import json
from ital_paper.report.sections import SECTIONS, all_sections
others = all_sections()[len(SECTIONS):]
print(json.dumps([[one.title, one.build(None)[0]["words"]] for one in others]))
"""


def test_a_section_of_another_package_is_in_the_report_and_a_broken_one_is_named(tmp_path):
    plugged.install(tmp_path, CODE, ENTRIES)
    done = plugged.python(tmp_path, "-c", LIST_SECTIONS)
    assert done.returncode == 0, done.stderr
    (name, broken), remarks = json.loads(done.stdout)
    assert name == "lost"
    assert broken.startswith(
        "'lost' from another package (made_up:nothing) is broken: AttributeError: "
    )
    assert remarks == ["Remarks", "remarked elsewhere"]
