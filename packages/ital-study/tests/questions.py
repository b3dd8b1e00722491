"""A study with questions of every kind, at every moment, in two languages."""

import dataclasses
import functools

import ital_study as study

TOML = """
[[questionnaires]]
id = "you"
when = "before"
title = "About you"
text = "Ask {contact} about these {maps} maps."

[[questionnaires.items]]
id = "age"
kind = "number"
question = "How old are you?"
least = 18
most = 120

[[questionnaires.items]]
id = "gender"
kind = "single"
question = "What is your gender?"
options = ["Woman", "Man", "Another"]
required = false

[[questionnaires]]
id = "robot"
when = "after_robot"
title = "Robot {robot} on map {map}"

[[questionnaires.items]]
id = "understanding"
kind = "likert"
question = "How well did robot {robot}"
rows = [{ id = "understood", text = "understand you?" }, { id = "learned", text = "learn?" }]
scale = ["not at all", "", "", "", "very well"]

[[questionnaires]]
id = "map"
when = "after_map"
title = "Map {map}"

[[questionnaires.items]]
id = "hard"
kind = "multiple"
question = "What was hard on map {map}?"
options = ["The colours", "The arrows", "The robot"]
required = false

[[questionnaires]]
id = "last"
when = "end"
title = "At last"

[[questionnaires.items]]
id = "hours"
kind = "number"
question = "How many hours did you sleep?"
least = 0
most = 24
whole = false
required = false

[[questionnaires.items]]
id = "plan"
kind = "text"
question = "How did you choose?"
longest = 40
required = false
"""

GERMAN = """
[[translations.de.questionnaires]]
id = "you"
title = "Über Sie"
text = "Fragen an {contact}"
items = [
    { id = "age", question = "Wie alt sind Sie?" },
    { id = "gender", question = "Was ist Ihr Geschlecht?", options = ["Frau", "Mann", "Anderes"] },
]

[[translations.de.questionnaires]]
id = "robot"
title = "Roboter {robot}"

[[translations.de.questionnaires.items]]
id = "understanding"
question = "Wie gut hat Roboter {robot}"
rows = ["Sie verstanden?", "gelernt?"]
scale = ["gar nicht", "", "", "", "sehr gut"]

[[translations.de.questionnaires]]
id = "map"
title = "Karte {map}"
items = [{ id = "hard", question = "Was war schwer?", options = ["Farben", "Pfeile", "Roboter"] }]

[[translations.de.questionnaires]]
id = "last"
title = "Zuletzt"
items = [{ id = "hours", question = "Wie lange Schlaf?" }, { id = "plan", question = "Wie?" }]
"""

ANSWERS = {
    "you": {"age": 34, "gender": 2},
    "robot": {"understanding": {"understood": 4, "learned": 2}},
    "map": {"hard": [1, 3]},
    "last": {"hours": 7.5, "plan": "By feeling"},
}


def bare():
    """The shorter study, without questions and other languages, ready for people, as TOML."""
    from tests.server.people import ready

    config = ready(study.load_config("short"))
    fields = {"contact": "us", **config.fields}
    return dataclasses.replace(config, questionnaires=(), translations={}, fields=fields).to_toml()


def german(config):
    """The other texts of a study, for questions in German."""
    pages = '[[translations.de.instructions]]\ntitle = "Seite"\ntext = "Text"\n' * len(
        config.instructions
    )
    checks = "".join(
        '[[translations.de.check]]\nquestion = "Frage"\n'
        f"options = {[str(i) for i in range(len(asked.options))]}\n"
        for asked in config.check
    )
    texts = '[translations.de]\ntitle = "Roboter"\nconsent = "Ja?"\ndebriefing = "Danke."\n'
    return texts + pages + checks


@functools.cache
def asking(**changes):
    """The shorter study with questions, in English and German; two maps, three steps each."""
    text = bare()
    config = study.parse_config(text + TOML + german(study.parse_config(text)) + GERMAN)
    return dataclasses.replace(config, **{"steps": 3, "warm_up_steps": 2, **changes})


def unasked(config):
    """The study without questions, in any language."""
    quiet = {
        name: dataclasses.replace(each, questionnaires=())
        for name, each in config.translations.items()
    }
    return dataclasses.replace(config, questionnaires=(), translations=quiet)
