import dataclasses
import json
import re
import tomllib

import numpy as np
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config.languages import best, shipped_words
from ital_study.config.shipped import shipped_text
from ital_study.config.texts import PLACEHOLDER

PAPER = study.load_config().to_toml()
HASH = "9bfce9a50ac45c7d"


def test_the_paper_s_study():
    config = study.load_config()
    assert config == study.load_config("paper")
    assert (config.steps, config.warm_up_steps, config.candidates, config.lr, config.beta) == (
        30,
        10,
        10,
        0.015,
        10000,
    )
    assert (config.arrows, config.palette, config.numbers, config.hint) == (
        "boltzmann",
        "safe",
        False,
        False,
    )
    assert config.learners == ("naive", "aware")
    assert [one.name for one in config.maps] == ["A", "B", "C", "D", "E"]
    norms = [np.linalg.norm(np.array(one.rewards)) for one in config.maps]
    np.testing.assert_allclose(norms, [11.314, 11.136, 12.329, 12.490, 11.314], atol=5e-4)
    assert {cell for one in config.all_maps for row in one.rewards for cell in row} == {
        -2.0,
        0.0,
        10.0,
    }
    assert config.maps[0].rewards[2] == (0, 0, -2, -2, 10)
    assert config.maps[3].rewards[0] == (-2, -2, -2, -2, 0)


def test_the_shorter_example_is_shorter_and_else_the_same():
    short, paper = study.load_config("short"), study.load_config()
    assert short.texts("de").instructions[0] == paper.texts("de").instructions[0]
    assert short.fields == {**paper.fields, "minutes": "10"}
    # The meaning of a file of one's own does not change.
    with pytest.raises(InputError, match="unknown key like"):
        study.parse_config('like = "paper"\n' + short.to_toml())
    assert len(short.maps) < 5
    assert short.steps < 30
    assert short.hash != study.load_config().hash


@pytest.mark.parametrize("name", ["paper", "short"])
def test_written_and_read_back(name, tmp_path):
    config = study.load_config(name)
    file = tmp_path / "study.toml"
    file.write_text(config.to_toml(), encoding="utf-8")
    again = study.load_config(file)
    assert again == config
    assert again.hash == config.hash


def test_the_hash_is_of_the_content_not_of_the_layout():
    config = study.load_config()
    assert (
        study.parse_config("# a remark\n" + PAPER.replace(" = ", "   =  ", 1)).hash == config.hash
    )
    for old, new in (
        ("hint = false", "hint = true"),
        ("seed = 2021", "seed = 2022"),
        ("Thank you! In", "Thanks! In"),
    ):
        assert PAPER.count(old) == 1
        assert study.parse_config(PAPER.replace(old, new)).hash != config.hash


def test_what_a_browser_is_told_gives_nothing_away():
    config = study.load_config()
    text = json.dumps(config.public())
    for secret in (
        "naive",
        "aware",
        "seed",
        '"answer"',
        "beta",
        config.completion.code,
        config.debriefing[:40],
    ):
        assert secret not in text, secret
    assert config.public()["check"][0].keys() == {"question", "options"}


@pytest.mark.parametrize("name", ["paper", "short"])
def test_studies_that_have_begun_keep_their_hash(name):
    """Some keys were added later: without them, a study keeps its meaning."""
    config = study.load_config(name)
    assert (config.adaptive, config.volume) == (False, "exact")
    assert not re.search("^(adaptive|robots|volume)", config.to_toml(), re.MULTILINE)
    assert (
        study.parse_config('adaptive = false\nvolume = "exact"\n' + config.to_toml()).hash
        == config.hash
    )


def test_the_hash_of_the_papers_study_is_that_of_studies_that_have_begun():
    """A changed text in the file needs a new value here; a new key must not change it."""
    assert study.load_config().hash.startswith(HASH)


# What the consent said before it called the data pseudonymous, by the words around it.
UNTRUE = {
    r"Your data are \*\*pseudonymous\*\*: if .* delete them\.": "If you came through a recruiting "
    "service, its number "
    "for you is stored only in a scrambled form that nobody can read back.",
    r"Ihre Daten sind \*\*pseudonym\*\*: Falls .* löschen\.": "Falls Sie über ein Portal "
    "zu uns kamen, speichern wir "
    "dessen Nummer für Sie nur so verschlüsselt, dass niemand sie zurückverfolgen kann.",
}


def test_a_study_with_the_consent_of_before_keeps_its_hash():
    """Nothing else depends on the consent.

    The value is that of before, with the debriefing of now.
    """
    text = shipped_text("paper").replace('version = "2"', 'version = "1"', 1)
    for now, before in UNTRUE.items():
        text, count = re.subn(now, before, text)
        assert count == 1
    assert study.parse_config(text).hash.startswith("d345842a7ca45ae3")


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_consent_says_what_pseudonymous_means(language):
    """The researcher finds people by their ID, so nobody may be promised that they cannot."""
    text = study.load_config().texts(language).consent.text
    assert {"en": "**pseudonymous**", "de": "**pseudonym**"}[language] in text
    assert {"en": "we find your data", "de": "finden wir Ihre Daten"}[language] in text
    assert "nobody can read back" not in text
    assert "zurückverfolgen" not in text


def test_the_imagined_volume():
    exact, imitated = study.load_config(), study.parse_config('volume = "imitated"\n' + PAPER)
    assert imitated.volume == "imitated"
    assert imitated.hash != exact.hash
    assert study.parse_config(imitated.to_toml()) == imitated
    assert "imitated" not in json.dumps(imitated.public())
    with pytest.raises(InputError, match="volume must be one of exact, imitated, not 'real'"):
        study.parse_config('volume = "real"\n' + PAPER)


def test_a_robot_may_know_how_its_teacher_chooses():
    plain = study.load_config("evidence")
    text = plain.to_toml()
    section = "\n[assumed_teacher]\nrho = 0.78\nunit = 0.078\nlapse = 0.1\n"
    known = study.parse_config(text + section)
    assert study.parse_config(known.to_toml()).hash == known.hash != plain.hash
    assert "assumed_teacher" not in text
    robots = study.StudyRules(known).robots
    assert robots["ital-posterior"].name == "ital-posterior:lapse=0.1:rho=0.78:unit=0.078"
    assert robots["posterior"].name == "posterior"
    lapse = study.parse_config(text + "\n[assumed_teacher]\nlapse = 0.05\n")
    assert study.parse_config(lapse.to_toml()).hash == lapse.hash
    for wrong, message in (
        ("rho = -1", "assumed_teacher.rho must be a number at least 0"),
        ("unit = 2", "unit is that of rho"),
        ("lapse = 0", "assumed_teacher.lapse must be a number above 0"),
    ):
        with pytest.raises(InputError, match=message):
            study.parse_config(f"{text}\n[assumed_teacher]\n{wrong}\n")


def test_robots_that_a_study_names():
    evidence = study.load_config("evidence")
    assert evidence.learners == ("aware", "posterior", "ital-posterior")
    assert study.parse_config(evidence.to_toml()) == evidence
    assert "posterior" not in json.dumps(evidence.public())
    in_any_order = study.parse_config('robots = ["aware", "naive"]\n' + PAPER)
    assert in_any_order.learners == ("naive", "aware")
    for robots, said in (
        ('["aware", "clever"]', "robots must name kinds of robot .*, not 'clever'"),
        ('["aware", "aware"]', "robots must name each kind of robot once"),
        ('["aware"]', "robots must be a list of at least two"),
        ('["posterior", "ital-posterior"]', "warm_up_learner must be one of posterior, ital-post"),
        ('["naive", "aware"]\nadaptive = true', "adaptive is for studies that name no robots"),
    ):
        with pytest.raises(InputError, match=said):
            study.parse_config(f"robots = {robots}\n{PAPER}")


def test_the_third_robot():
    two, three = study.load_config(), study.parse_config("adaptive = true\n" + PAPER)
    assert three.learners == (*two.learners, "adaptive") == ("naive", "aware", "adaptive")
    assert three.hash != two.hash
    assert study.parse_config(three.to_toml()) == three
    assert (two.public()["robots"], three.public()["robots"]) == (2, 3)
    assert "adaptive" not in json.dumps(three.public())
    warm = PAPER.replace('warm_up_learner = "aware"', 'warm_up_learner = "adaptive"')
    assert study.parse_config("adaptive = true\n" + warm).warm_up_learner == "adaptive"
    with pytest.raises(
        InputError, match="warm_up_learner must be one of naive, aware, not 'adaptive'"
    ):
        study.parse_config(warm)
    with pytest.raises(InputError, match="adaptive must be true or false, not 'yes'"):
        study.parse_config('adaptive = "yes"\n' + PAPER)


REFUSED = [
    ("steps = 30", "step = 30", "study.toml: unknown key step: the keys here are name, title"),
    (
        "slip = 0.06",
        "slope = 0.06",
        "unknown key world.slope: the keys here are slip, death, discount, sharpness",
    ),
    ("seed = 2021", "", "the key seed is missing"),
    ("steps = 30", "steps = 0", "steps must be a whole number from 1 to 1000, not 0"),
    ("steps = 30", "steps = true", "steps must be a whole number from 1 to 1000, not True"),
    ("steps = 30", "steps = 30.0", "steps must be a whole number"),
    (
        "candidates = 10",
        "candidates = 13",
        "candidates must be a whole number from 2 to 12, not 13",
    ),
    ("lr = 0.015", "lr = 0", "lr must be a number above 0, at most 1, not 0"),
    ("lr = 0.015", "lr = nan", "lr must be a number above 0, at most 1, not nan"),
    ("beta = 10000.0", "beta = -1", "beta must be a number at least 0"),
    (
        'arrows = "boltzmann"',
        'arrows = "best"',
        "arrows must be one of boltzmann, optimal, not 'best'",
    ),
    ('palette = "safe"', 'palette = ["safe"]', "palette must be one of safe, paper"),
    ("hint = false", 'hint = "no"', "hint must be true or false, not 'no'"),
    (
        'name = "A"',
        'name = "B"',
        "maps and warm_up_map must have different names, but 'B' occurs twice",
    ),
    ('name = "paper"', 'name = "../up"', "name may contain only letters, digits, - and _"),
    (
        "[0.0, 0.0, -2.0, -2.0, 10.0]",
        "[0.0, 0.0, -2.0, 10.0]",
        "maps[1].rewards must be a square of numbers",
    ),
    (
        "[0.0, 0.0, -2.0, -2.0, 10.0]",
        "[0.0, 0.0, -2.0, -2.0, inf]",
        "maps[1].rewards must be numbers from -100 to 100",
    ),
    ("answer = 2", "answer = 3", "check[3].answer must be a whole number from 0 to 2, not 3"),
    (
        '"Show it every arrow once"',
        '" "',
        "check[1].options must be a list of at least two answers, each a text",
    ),
    (
        '"Show it every arrow once"',
        "7",
        "check[1].options must be a list of at least two answers, each a text",
    ),
    (
        'picture = "arrow"',
        'picture = "photo"',
        "instructions[3].picture must be one of world, maps, arrow",
    ),
    ("death = 0.02", "death = 0.9", "world.slip and death must be probabilities"),
    (
        "[completion]",
        '[completion]\nredirect = "javascript:alert(1)"',
        "completion.redirect must be an address",
    ),
    ("[completion]", "[end]", "unknown key end"),
    ("[consent]", "[[consent]]", "consent must be a table of keys"),
    ("seed = 2021", "seed = ", "is not TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_makes_no_study_is_refused_by_name(old, new, message):
    assert old in PAPER
    with pytest.raises(InputError) as refused:
        study.parse_config(PAPER.replace(old, new, 1))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_maps_of_two_sizes_are_refused():
    content = tomllib.loads(PAPER)
    small = "rewards = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]"
    rows = PAPER.split("[warm_up_map]")[1].split("rewards = ")[1].split("\n")[0]
    assert len(content["warm_up_map"]["rewards"]) == 5
    with pytest.raises(
        InputError, match="maps must all have one size, but 'A' has 5 rows and 'warm-up' has 3"
    ):
        study.parse_config(PAPER.replace(f"rewards = {rows}", small))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(
        InputError, match=r"cannot read the configuration .*none\.toml: No such file"
    ):
        study.load_config(tmp_path / "none.toml")


GERMAN = """
[translations.de]
title = "Roboter"
consent = "Es gibt {maps} Karten. Fragen an {contact}."
debriefing = "Danke."
words = { "welcome.title" = "Hallo" }
"""


def german(paper):
    config = study.parse_config(paper)
    pages = "".join(
        '[[translations.de.instructions]]\ntitle = "Seite"\ntext = "Text"\n'
        for _ in config.instructions
    )
    checks = "".join(
        f'[[translations.de.check]]\nquestion = "Frage {i}"\n'
        f"options = {json.dumps(list('0123'[: len(q.options)]))}\n"
        for i, q in enumerate(config.check)
    )
    return paper + '[fields]\ncontact = "us@example.org"\n' + GERMAN + pages + checks


def test_languages_and_fields():
    bare = dataclasses.replace(
        study.load_config(), fields={}, translations={}, questionnaires=()
    ).to_toml()
    bare = re.sub(r"\{(researcher|contact|approval|payment|minutes)\}", "", bare)
    config = study.parse_config(german(bare))
    assert config.languages == ("en", "de")
    assert study.parse_config(config.to_toml()) == config
    texts = config.texts("de")
    assert texts.consent.text == "Es gibt 5 Karten. Fragen an us@example.org."
    assert texts.consent.version == config.consent.version
    assert [q.answer for q in texts.check] == [q.answer for q in config.check]
    assert [p.picture for p in texts.instructions] == [p.picture for p in config.instructions]
    assert config.public("de")["title"] == "Roboter"
    assert config.public("fr")["title"] == config.public()["title"] == config.texts().title
    assert config.words_in("de")["welcome.title"] == "Hallo"
    assert config.words_in("de")["direction"] == "ltr"
    for old, new, said in (
        ("{contact}", "{nobody}", "unknown field {nobody}: add it to"),
        (
            '"welcome.title"',
            '"welcome.tilte"',
            "translations.de.words has the unknown key welcome.tilte",
        ),
        (
            "translations.de",
            "translations.fr",
            "translations.fr.words lacks .* ital has no words in 'fr'",
        ),
        ("translations.de", "translations.en", "translations.en is the first language"),
        ("[fields]", "[fields]\nmaps = 'x'", "fields.maps is no name for a field"),
    ):
        with pytest.raises(InputError, match=said):
            study.parse_config(german(bare).replace(old, new))


def test_a_translation_has_as_many_pages_and_answers():
    bare = dataclasses.replace(
        study.load_config(), fields={}, translations={}, questionnaires=()
    ).to_toml()
    bare = re.sub(r"\{(researcher|contact|approval|payment|minutes)\}", "", bare)
    text = german(bare)
    page = '[[translations.de.instructions]]\ntitle = "Seite"\ntext = "Text"\n'
    with pytest.raises(
        InputError, match=r"instructions has \d entries, but the first language has"
    ):
        study.parse_config(text.replace(page, "", 1))
    with pytest.raises(
        InputError, match=r"check\[1\].options has 2 answers, but the first language has 3"
    ):
        study.parse_config(text.replace('["0", "1", "2"]', '["0", "1"]', 1))


def test_one_goal_in_all_texts():
    """Instructions, check and rounds name the same goal, in every language.

    The belief about the whole map.
    """
    config = study.load_config()
    goals = {
        "en": r"belief (about the whole map )?(should be )?as much like the true map as (possible)",
        "de": r"der wahren Karte so ähnlich wie möglich",
    }
    assert set(goals) == set(config.languages)
    for language, goal in goals.items():
        texts = config.texts(language)
        first, last = texts.instructions[0].text, texts.instructions[-1].text
        right = texts.check[0].options[texts.check[0].answer]
        round_goal = config.words_in(language)["round.goal"]
        for text in (first, last, right, round_goal):
            assert re.search(goal, text), text
        assert all(page.picture for page in texts.instructions)


def test_a_researcher_fills_in_four_lines():
    """Placeholders stand in three fields and in the completion code, and each is used in every
    language.
    """
    config = study.load_config()
    gaps = [name for name, value in config.fields.items() if PLACEHOLDER.search(value)]
    assert gaps == ["researcher", "contact", "approval"]
    assert PLACEHOLDER.search(config.completion.code)
    changed = dataclasses.replace(config, fields={**config.fields, **dict.fromkeys(gaps, "X Y Z")})
    for language in config.languages:
        for key, text in changed.texts(language).all():
            assert not PLACEHOLDER.search(text), key
        assert changed.texts(language).consent.text.count("X Y Z") == 3


def test_every_language_has_every_word():
    english, german_words = shipped_words("en"), shipped_words("de")
    assert english.keys() == german_words.keys() == shipped_words("qps").keys()
    for key, word in english.items():
        for other in (german_words, shipped_words("qps")):
            assert set(re.findall(r"\{\w+\}", other[key])) == set(re.findall(r"\{\w+\}", word)), key


@pytest.mark.parametrize(
    ("wishes", "language"),
    [
        ("de-AT,en", "de"),
        ("fr,de", "de"),
        ("", "en"),
        ("EN-us", "en"),
        ("x,,", "en"),
        ("pt-BR", "pt-BR"),
        ("pt", "en"),
    ],
)
def test_the_language_that_fits_best(wishes, language):
    assert best(wishes, ("en", "de", "pt-BR")) == language


def test_a_shipped_file_may_say_only_what_differs():
    text = shipped_text("short")
    assert study.parse_config(text) == study.load_config("short")
    assert "\nsteps = 8                    # arrows shown to each robot\n" in text  # comments stay
    assert text.count("[[maps]]") == 2
    assert "like =" not in text
