import ital_study as study
from ital_study.server._markdown import parse_markdown


def p(*children):
    return {"tag": "p", "children": list(children)}


def test_text_without_marks_is_paragraphs():
    assert parse_markdown("One line\nand another.\n\nNext, with 2 * 3 and a_b_c.") == [
        p("One line", " ", "and another."),
        p("Next, with 2 * 3 and a_b_c."),
    ]


def test_headings_lists_and_emphasis():
    text = "## First\n\nA **bold** and an *italic* word.\n- one\n- two\n\n#### Below\n\n1. first"
    assert parse_markdown(text) == [
        {"tag": "heading", "level": 1, "children": ["First"]},
        p(
            "A ",
            {"tag": "strong", "children": ["bold"]},
            " and an ",
            {"tag": "em", "children": ["italic"]},
            " word.",
        ),
        {
            "tag": "ul",
            "children": [{"tag": "li", "children": ["one"]}, {"tag": "li", "children": ["two"]}],
        },
        {"tag": "heading", "level": 2, "children": ["Below"]},
        {"tag": "ol", "children": [{"tag": "li", "children": ["first"]}]},
    ]


def test_links_lead_to_web_and_mail_addresses_only():
    assert parse_markdown("[us](https://example.org/a?b=c)") == [
        p({"tag": "a", "href": "https://example.org/a?b=c", "children": ["us"]})
    ]
    assert (
        parse_markdown("[us](mailto:us@example.org)")[0]["children"][0]["href"]
        == "mailto:us@example.org"
    )
    for address in (
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "http://example.org",
        "/leave",
    ):
        assert parse_markdown(f"[us]({address})") == [p(f"[us]({address})")]


def test_nothing_else_is_markdown():
    for text in (
        "<b>bold</b> <script>x</script>",
        "&lt;b&gt;",
        "`code`",
        "> quote",
        "***",
        "| a | b |",
        "[gap]",
    ):
        assert parse_markdown(text) == [p(text)]
    assert parse_markdown("    four blanks") == [p("four blanks")]


def test_shipped_texts_are_read():
    for name in ("paper", "short"):
        config = study.load_config(name)
        for language in config.languages:
            texts = config.texts(language)
            for text in (
                texts.consent.text,
                texts.debriefing,
                *(page.text for page in texts.instructions),
            ):
                assert all(
                    block["tag"] in ("p", "heading", "ul", "ol") for block in parse_markdown(text)
                )
