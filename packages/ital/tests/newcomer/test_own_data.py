"""Own data in a few lines: arrays in Python, a table on the command line."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from sklearn import datasets
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ital
from ital.errors import InputError
from ital.models import linear
from ital.tasks import from_arrays, from_table
from tests.typed import ital as type_in

pytestmark = pytest.mark.usefixtures("undrawn")
RUN = {"steps": 20, "seeds": 2, "lr": 0.01}
TYPED = ("--methods", "imt,ital", "--steps", "20", "--seeds", "2", "--lr", "0.01")
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(60, 4)), RNG.normal(size=(60, 3))
CLASSES = np.arange(60) % 3


def made(*arguments, **options):
    return from_arrays(*arguments, quiet=True, **options)


def final(result, metric):
    curve = result.curves[metric].mean("seed").sel({"learner": "ital"})
    return curve.values[0], curve.values[-1]


def typed(capsys, *arguments):
    return type_in(capsys, "run", *arguments)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def flowers(here):
    iris = datasets.load_iris(as_frame=True)
    species = pd.Series(iris.target_names[iris.target], name="species")
    pd.concat([iris.data.set_axis(["sl", "sw", "pl", "pw"], axis=1), species], axis=1).to_csv(
        "flowers.csv", index=False
    )
    return here / "flowers.csv"


# What is taught in five lines.


def test_digits():
    x, y = datasets.load_digits(return_X_y=True)
    task = from_arrays(x[:, ::2], x, y)
    result = ital.teach(task, learner=["imt", "ital"], **RUN | {"steps": 100, "lr": 0.1})
    start, end = final(result, "accuracy")
    assert end > start + 0.3
    assert task.settings["classes"] == list(range(10))


def test_diabetes_is_a_regression_though_its_targets_are_whole():
    x, y = datasets.load_diabetes(return_X_y=True)
    result = ital.teach(from_arrays(x, y=y), learner=["imt", "ital"], **RUN)
    start, end = final(result, "loss")
    assert end < start / 2
    assert result.task.settings["kind"] == "regression"


def test_breast_cancer_is_binary():
    x, y = datasets.load_breast_cancer(return_X_y=True)
    result = ital.teach(from_arrays(x, y=y), learner=["imt", "ital"], **RUN)
    assert final(result, "accuracy")[1] > 0.85
    assert result.parameters["ital"].shape == (2, 2, 31)


@pytest.mark.parametrize("name", ["digits", "diabetes", "breast_cancer"])
def test_the_same_tables_on_the_command_line(capsys, here, name):
    # With row numbers, as pandas writes them.
    getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(f"{name}.csv")
    status, _, err = typed(capsys, "--data", f"{name}.csv", "--label", "target", *TYPED)
    assert status == 0, err
    with xr.open_dataset(f"results/{name}/cooperative/curves.nc") as curves:
        assert curves.attrs["kind"] == ("regression" if name == "diabetes" else "classification")
        assert "Unnamed" not in curves.attrs["learner_columns"]


# Labels.


@pytest.mark.parametrize(
    "y",
    [
        np.array(["c", "a", "b"])[CLASSES],
        ["c", "a", "b"] * 20,
        np.array([7, -2, 5])[CLASSES],
        np.array([7.0, -2.0, 5.0])[CLASSES][:, None],
        pd.Series(["c", "a", "b"] * 20, dtype="category"),
        pd.Series(["c", "a", "b"] * 20, dtype="string"),
        pd.DataFrame({"y": ["c", "a", "b"] * 20}),
    ],
)
def test_classes_of_any_kind_are_numbered_in_their_order(y):
    task = made(X, y=y, x_test=X, y_test=y)
    np.testing.assert_array_equal(task.world(0).learner.labels, np.array([2, 0, 1])[CLASSES])
    np.testing.assert_array_equal(task.world(0).truth.test.labels, np.array([2, 0, 1])[CLASSES])


def test_one_hot_columns_are_classes():
    task = made(X, y=np.eye(3)[CLASSES], x_test=X[:3], y_test=np.eye(3))
    np.testing.assert_array_equal(task.world(0).learner.labels, CLASSES)
    np.testing.assert_array_equal(task.world(0).truth.test.labels, [0, 1, 2])


def test_booleans_are_two_classes():
    assert made(X, y=X[:, 0] > 0).settings["classes"] == [False, True]


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (X[:, 0], "regression"),
        (X[:, :2], "regression"),
        (np.arange(60), "regression"),
        (CLASSES, "classification"),
    ],
)
def test_the_kind_is_inferred_and_can_be_said(y, kind):
    assert made(X, y=y).settings["kind"] == kind
    assert made(X, y=y, kind="regression").settings["kind"] == "regression"


@pytest.mark.parametrize(
    ("distinct", "rows", "kind"),
    [
        (20, 40, "classification"),
        (20, 39, "regression"),  # fewer than two rows for a class
        (21, 209, "regression"),
        (21, 210, "classification"),  # ten rows for a class
        (2, 4, "classification"),
        (2, 3, "regression"),
    ],
)
def test_few_whole_numbers_are_classes_if_there_are_rows_enough(distinct, rows, kind):
    y = np.arange(rows) % distinct
    x = RNG.normal(size=(rows, 2))
    assert made(x, y=y, x_test=x, y_test=y).settings["kind"] == kind


def test_what_is_inferred_is_printed_once_unless_quiet(capsys):
    from_arrays(X, y=CLASSES, name="mine", l2=2.0)
    err = capsys.readouterr().err
    assert err == (
        "mine: classification, 3 classes (0, 1, 2); 45 rows for teaching, 15 for testing; "
        "columns standardised; targets fitted by LogisticRegression(C=0.5)\n"
    )
    made(X, y=CLASSES)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("count", "listed"), [(4, "4 classes (0, 1, 2, 3)"), (5, "5 classes (0, 1 … 4)")]
)
def test_up_to_four_classes_are_all_named(capsys, count, listed):
    from_arrays(X, y=np.arange(len(X)) % count)
    assert f"classification, {listed}; " in capsys.readouterr().err


# Test set.


def test_a_test_set_is_split_off_by_seed_and_class():
    task, same, other = (made(X, y=CLASSES, test_size=0.2, split_seed=seed) for seed in (0, 0, 1))
    tests = [each.world(0).truth.test for each in (task, same, other)]
    np.testing.assert_array_equal(np.bincount(tests[0].labels), [4, 4, 4])
    np.testing.assert_array_equal(tests[0].x.x, tests[1].x.x)
    assert not np.array_equal(tests[0].x.x, tests[2].x.x)
    assert task.data_version == same.data_version != other.data_version


@pytest.mark.parametrize("given", [True, False])
def test_the_test_set_is_in_the_units_of_the_teaching_rows(given):
    """Also where its own rows have another mean and deviation."""
    x, z = 3 + 2 * X, 5 * Z - 1
    y = x @ [1.0, -2.0, 0.5, 3.0] + 7
    own = {"x_test": 9 - 4 * x[:20], "y_test": 50 - 3 * y[:20]} if given else {}
    raw, scaled = (made(z, x, y, standardise=units, **own).world(0) for units in (False, True))
    taught = np.asarray(raw.learner.x.x)[:, :-1], np.asarray(raw.learner.labels)
    tested = np.asarray(raw.truth.test.x.x)[:, :-1], np.asarray(raw.truth.test.labels)
    assert (len(taught[0]), len(tested[0])) == ((60, 20) if given else (45, 15))
    found = np.asarray(scaled.truth.test.x.x)[:, :-1], np.asarray(scaled.truth.test.labels)
    for here, there, expected in zip(found, tested, taught, strict=True):
        np.testing.assert_allclose(
            here, (there - expected.mean(axis=0)) / expected.std(axis=0), rtol=1e-3, atol=1e-5
        )
    theirs = np.asarray(raw.teacher.examples.x.x)[:, :-1]
    in_units = np.asarray(scaled.teacher.examples.x.x)[:, :-1]
    np.testing.assert_allclose(
        in_units, (theirs - theirs.mean(axis=0)) / theirs.std(axis=0), rtol=1e-3, atol=1e-5
    )


# Targets.


def test_targets_are_fitted_on_each_view():
    task = made(X, Z, CLASSES, x_test=Z, y_test=CLASSES, standardise=False, l2=4.0)
    world = task.world(0)
    for view, target in ((X, world.teacher.target), (Z, world.truth.target)):
        fit = LogisticRegression(C=0.25, max_iter=5000).fit(view, CLASSES)
        np.testing.assert_allclose(target, np.column_stack([fit.coef_, fit.intercept_]), atol=1e-3)


def test_a_binary_target_gives_the_probabilities_of_scikit_learn():
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
    given = LogisticRegression().fit(10 * X + 3, y)
    world = made(10 * X + 3, y=y, teacher_target=given, x_test=10 * X + 3, y_test=y).world(0)
    alpha = np.asarray(world.truth.test.x.x) @ np.asarray(world.truth.target).T
    probabilities = np.exp(alpha) / np.exp(alpha).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, given.predict_proba(10 * X + 3), atol=1e-4)


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(alpha=3.0, fit_intercept=False)])
def test_a_given_regression_predicts_the_same_in_standard_units(estimator):
    y = 100 + 20 * X[:, 0] - Z[:, 1]
    estimator.fit(5 * X + 1, y)
    world = made(5 * X + 1, Z, y, teacher_target=estimator, x_test=Z, y_test=y).world(0)
    outputs = (np.asarray(world.teacher.examples.x.x) @ np.asarray(world.teacher.target).T)[:, 0]
    np.testing.assert_allclose(
        outputs * y.std() + y.mean(), estimator.predict(5 * X + 1), rtol=1e-4
    )


# β and views.


def test_beta_is_found_per_seed_unless_given():
    found = ital.teach(made(X, y=CLASSES), learner="ital", **RUN).curves["beta"]
    assert len(np.unique(found)) == 2
    given = ital.teach(made(X, y=CLASSES, beta=12.0), "adversarial", "ital", **RUN).curves["beta"]
    np.testing.assert_array_equal(given, -12.0)


def test_one_view_is_shared():
    for task in (made(X, y=CLASSES), made(None, X, CLASSES)):
        world = task.world(0)
        assert world.learner.x.x is world.teacher.examples.x.x


# Input errors.


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((scipy.sparse.csr_matrix(X),), {"y": CLASSES}, r"^x_teacher is sparse.*toarray"),
        ((X, CLASSES), {}, r"^y is missing: .*from_arrays\(x, y=y\)"),
        ((X[:, 0],), {"y": CLASSES}, r"^x_teacher must be a table .* not shape \(60,\)$"),
        (
            (np.ones((60, 2, 3)),),
            {"y": CLASSES},
            r"not shape \(60, 2, 3\): use x_teacher.reshape\(len\(x_teacher\), -1\)$",
        ),
        ((X, Z[:50], CLASSES), {}, "^x_learner has 50 rows, but y has 60 labels"),
        (
            (pd.DataFrame({"a": X[:, 0], "city": ["Rome"] * 60}),),
            {"y": CLASSES},
            "^x_teacher: column 'city' holds",
        ),
        ((np.where(X > 2, np.nan, X),), {"y": CLASSES}, "^x_teacher: column . has missing"),
        ((X,), {"y": [None, *CLASSES[1:]]}, "^y has missing values"),
        ((X,), {"y": ["a"] * 60}, "^y holds one class only"),
        ((X,), {"y": ["a", *["b", "c"] * 29, "b"]}, "^y: class 'a' has one row"),
        ((X,), {"y": ["a", "b"] * 30, "kind": "regression"}, "^y holds text"),
        (
            (X,),
            {"y": CLASSES, "kind": "ranking"},
            "^kind must be 'classification', 'regression' or None",
        ),
        ((X,), {"y": CLASSES, "test_size": 2.0}, "^test_size = 2.0 cannot be split off"),
        ((X,), {"y": CLASSES, "x_test": X}, "^x_test and y_test belong together"),
        (
            (X,),
            {"y": CLASSES, "x_test": Z, "y_test": CLASSES},
            r"^x_test has shape \(60, 3\), expected \(60, 4\)",
        ),
        ((X,), {"y": CLASSES, "x_test": X[:2], "y_test": [1, 9]}, "^y_test holds the class 9"),
        ((X,), {"y": CLASSES, "l2": 0.0}, "^l2 .* must be a positive number"),
        ((X,), {"y": CLASSES, "split_seed": -1}, "^split_seed must be a whole number"),
        (
            ([[1.0, 2.0], [3.0]],),
            {"y": [0, 1]},
            "^x_teacher must be a table .* rows differ in length",
        ),
        (
            (X,),
            {"y": CLASSES, "beta": "sharp"},
            "^beta must be a finite number or 'auto', not 'sharp'",
        ),
        (
            (X,),
            {"y": CLASSES, "teacher_target": Ridge()},
            "^teacher_target must be a fitted .* call its fit first",
        ),
        (
            (X,),
            {
                "y": CLASSES,
                "learner_target": make_pipeline(StandardScaler(), Ridge()).fit(X, X[:, 0]),
            },
            "^learner_target must be a fitted linear estimator .* last step",
        ),
        (
            (X,),
            {"y": CLASSES, "teacher_target": Ridge().fit(X, X[:, 0])},
            "^teacher_target must be a classifier",
        ),
        (
            (X,),
            {"y": CLASSES, "teacher_target": LogisticRegression().fit(Z, CLASSES)},
            "^teacher_target was fitted on 3 columns for 3 outputs, expected 4",
        ),
        (
            (X,),
            {"y": CLASSES, "teacher_target": LogisticRegression().fit(X, CLASSES + 1)},
            r"^teacher_target knows the classes",
        ),
        ((X,), {"y": CLASSES, "model": lambda loss: loss}, "^model must be a function from a loss"),
        (
            (X,),
            {"y": CLASSES, "model": linear, "learner_target": Ridge()},
            "^learner_target .* leave it out",
        ),
    ],
)
def test_an_input_error_is_one_line_that_names_the_argument(arguments, options, message):
    with pytest.raises(InputError, match=message) as error:
        made(*arguments, **options)
    assert "\n" not in str(error.value)


def test_a_boltzmann_teacher_needs_its_rationality_where_there_is_no_beta():
    with pytest.raises(InputError, match="boltzmann:RHO"):
        ital.teach(made(X, y=CLASSES), "boltzmann", **RUN)


# The command line.


def test_a_table_with_text_labels_is_taught_and_resumed(capsys, flowers):
    command = [
        "--data",
        "flowers.csv",
        "--label",
        "species",
        "--teacher-columns",
        "pl,pw",
        "--learner-columns",
        "sl, pl",
    ]
    status, out, err = typed(capsys, *command, *TYPED)
    assert status == 0, err
    assert "flowers: classification, 3 classes (setosa, versicolor, virginica)" in err
    assert "results/flowers/cooperative/curves.nc" in out
    with xr.open_dataset("results/flowers/cooperative/curves.nc") as curves:
        assert curves.attrs["beta"] == "auto"
        assert curves.attrs["teacher_columns"] == '["pl", "pw"]'
        assert curves.attrs["learner_columns"] == '["sl", "pl"]'
    assert "nothing was computed" in typed(capsys, *command, *TYPED)[1]
    flowers.write_text(flowers.read_text() + "1,1,1,1,setosa\n")
    status, _, err = typed(capsys, *command, *TYPED)
    assert status == 2
    assert "was made with" in err
    assert "--overwrite" in err


def test_csv_and_parquet_make_the_same_task(flowers):
    pytest.importorskip("pyarrow")
    pd.read_csv(flowers).to_parquet("flowers.parquet")
    csv, parquet = (
        from_table(f"flowers.{ending}", "species", quiet=True) for ending in ("csv", "parquet")
    )
    assert csv.name == parquet.name == "flowers"
    np.testing.assert_array_equal(csv.world(0).learner.x.x, parquet.world(0).learner.x.x)
    assert csv.data_version != parquet.data_version


def test_parquet_without_pyarrow_is_a_hint(here, monkeypatch):
    monkeypatch.setattr(
        pd, "read_parquet", lambda path: (_ for _ in ()).throw(ImportError("no engine"))
    )
    (here / "t.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="pip install pyarrow"):
        from_table("t.parquet", "y")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "argument TASK is missing: .* --data FILE"),
        (["flowers", "--data", "flowers.csv"], "TASK and --data exclude each other"),
        (["--data", "flowers.csv"], "label is missing: .* sl, sw, pl, pw, species"),
        (
            ["--data", "flowers.csv", "--label", "specie"],
            "has no column 'specie': did you mean 'species'",
        ),
        (
            ["--data", "flowers.csv", "--label", "species", "--teacher-columns", "pl,species"],
            "'species' holds the labels",
        ),
        (["--data", "none.csv", "--label", "y"], "cannot read the table none.csv: No such file"),
        (["--data", "flowers.txt", "--label", "y"], "must end in .csv or .parquet"),
        (["regression", "--label", "y"], "--label describes a table"),
        (
            ["--data", "flowers.csv", "--label", "species", "--teacher", "boltzmann"],
            "boltzmann:RHO",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(capsys, flowers, command, message):
    status, out, err = typed(capsys, *command)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not (flowers.parent / "results").exists()


def test_nothing_of_scikit_learn_is_loaded_before_it_is_needed():
    code = "import sys, ital.tasks; print([m for m in ('sklearn', 'pandas') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize(
    ("separator", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_a_table_with_other_separators_is_named(here, separator, name):
    rows = (separator.join(row) for row in ("ab", "12", "34"))
    (here / "table.csv").write_text("\n".join(rows))
    with pytest.raises(
        InputError, match=rf"^table\.csv: its columns are separated by {name}: save it with commas$"
    ):
        from_table("table.csv", "b")
