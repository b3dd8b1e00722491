import csv
import io

import numpy as np
import pandas as pd
import pytest

from ital.errors import InputError
from ital_study.data import codebooks
from ital_study.data import table as _table


@pytest.fixture
def few(steps):
    """Some rows, with times as a person's would have."""
    rows = steps.head(90).copy()
    rows.loc[rows.index[:30], "shown_at"] = "2026-01-02T03:04:05.678+00:00"
    rows.loc[rows.index[:30], "seconds_to_choice"] = np.linspace(0.1, 7, 30) / 3
    return _table.frame(rows)


def test_csv_and_parquet_give_back_every_bit(few):
    pd.testing.assert_frame_equal(
        _table.read_csv(io.StringIO(_table.csv_text(few))), few, check_exact=True
    )
    again = _table.frame(pd.read_parquet(io.BytesIO(_table.parquet_bytes(few))))
    pd.testing.assert_frame_equal(again, few, check_exact=True)


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "'=1",
    "''@a",
    '=HYPERLINK("http://evil.test";"a")',
]
HARMLESS = ["", "1 + 1 = 2", "a@b", "'", "'a", " =1", "é"]


def test_texts_that_a_spreadsheet_takes_for_formulas_get_an_apostrophe():
    """Reading removes it; numbers below zero are none."""
    texts = FORMULAS + HARMLESS
    rows = [
        dict.fromkeys(codebooks.ANSWERS, "") | {"participant": 1, "label": text} for text in texts
    ]
    table = _table.frame(
        [row | {"value": -1.5, "seconds": np.nan} for row in rows], codebooks.ANSWERS, "table"
    )
    written, raw = _table.csv_text(table), _table.csv_text(table, raw=True)
    cells = list(csv.DictReader(io.StringIO(written, newline="")))
    assert [cell["label"] for cell in cells] == [f"'{text}" for text in FORMULAS] + HARMLESS
    assert {cell["value"] for cell in cells} == {"-1.5"}
    pd.testing.assert_frame_equal(_table.read_csv(io.StringIO(written), codebooks.ANSWERS), table)
    assert [cell["label"] for cell in csv.DictReader(io.StringIO(raw, newline=""))] == texts


@pytest.mark.parametrize("raw", [False, True])
def test_carriage_returns_do_not_end_a_row(raw):
    texts = ["a\rb", "\r=1", "=1\r", "a\r\nb"]
    rows = [
        dict.fromkeys(codebooks.ANSWERS, "") | {"participant": 1, "label": text} for text in texts
    ]
    table = _table.frame(
        [row | {"value": 1.0, "seconds": np.nan} for row in rows], codebooks.ANSWERS, "table"
    )
    read = _table.read_csv(io.StringIO(_table.csv_text(table, raw=raw)), codebooks.ANSWERS)
    assert read["label"].tolist() == ["a\nb", "\n=1", "=1\n", "a\nb"]


def test_csv_in_blocks_is_csv(few):
    blocks = _table.csv_text(few.head(40)) + _table.csv_text(few.tail(50), header=False)
    assert blocks == _table.csv_text(few)


def test_a_study_folder(few, config, tmp_path):
    # Its parent is not there either.
    out = tmp_path / "new" / "out"
    files = _table.write_study(out, config, few)
    tables = {"steps.csv", "steps.parquet", "participants.csv"}
    assert {file.name for file in files} == tables | {"events.jsonl", "codebook.md", "study.toml"}
    people = _table.read_csv(out / "participants.csv", codebooks.PARTICIPANTS)
    counts = few.groupby(["participant", "teacher"], sort=False).size()
    assert people[["participant", "teacher", "done"]].to_numpy().tolist() == [
        [*who, n] for who, n in counts.items()
    ]
    again = _table.read_study(out)
    assert again.config.hash == config.hash
    pd.testing.assert_frame_equal(again.steps, few, check_exact=True)
    text = (out / "codebook.md").read_text()
    assert "Simulated data" in text
    assert config.hash in text
    assert all(f"| `{name}` |" in text for name in _table.COLUMNS)


def test_a_codebook_of_people_does_not_say_simulated(config):
    assert "Simulated data" not in _table.codebook(config, ["live"])
    assert "Simulated data" not in _table.codebook(config, ["live", "simulated"])


def test_folders_that_are_none(few, config, tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        _table.read_study(tmp_path / "none")
    with pytest.raises(InputError, match=r"is not a study folder: it has no steps\.csv"):
        _table.read_study(tmp_path)
    _table.write_study(tmp_path, config, few)
    (tmp_path / "steps.csv").write_text(
        _table.csv_text(few) + _table.csv_text(few.tail(1), header=False)
    )
    with pytest.raises(
        InputError,
        match="step 30 of participant 1 on map 'A' with the naive robot is in the table twice",
    ):
        _table.read_study(tmp_path)
    (tmp_path / "steps.csv").write_text(_table.csv_text(few.drop(columns="learner")))
    with pytest.raises(InputError, match="the step table has no column 'learner'"):
        _table.read_study(tmp_path)
    (tmp_path / "steps.csv").write_text(_table.csv_text(few).replace(",1,", ",one,"))
    with pytest.raises(InputError, match="wrong kind"):
        _table.read_study(tmp_path)
