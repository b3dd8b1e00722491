import re
from dataclasses import replace

import jax
import pytest

import ital
from ital import learners, tasks
from ital.errors import InputError
from ital.experiments import load_curves, save_curves
from ital.report import figures_in
from ital_paper.claims import catalogue
from ital_paper.experiments import jobs, plan
from ital_paper.experiments.data import Data, Evidence
from ital_paper.experiments.plan import FULL, QUICK, STARTS, Condition
from ital_paper.report import page as _report
from ital_paper.reproduce import _work, reproduce
from tests.features.data import write_views
from tests.reproduce.made_up import blocks_of, in_context

pytestmark = pytest.mark.usefixtures("undrawn")
SMALL = QUICK._replace(
    seeds=2, steps=20, theory=("regression",), theory_steps=40, theory_seeds=2, sweep_seeds=1
)


@pytest.fixture
def small(monkeypatch):
    """A scale that takes seconds."""
    monkeypatch.setattr(_work, "QUICK", SMALL)
    monkeypatch.setattr(plan, "STEP_SIZES", (0.001, 0.01))
    monkeypatch.setattr(plan, "RATIONALITIES", (0.0, 1.0))


def test_a_report_that_stands_by_itself_and_is_not_computed_twice(small, tmp_path, monkeypatch):
    said = []
    report = reproduce(["regression"], quick=True, out=tmp_path, say=said.append)
    assert report == tmp_path / "index.html"
    page = report.read_text()
    for needed in (
        "does not hold",
        "needs people",
        "Batch matched",
        "Quick run: 2 seeds and 20 steps",
        "β",
    ):
        assert needed in page
    assert "at the end of its range" in page
    assert page.count('<div class="tile" role="img"') >= 20
    assert page.count("quick run: ") >= page.count("<figure")
    outside = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)
    assert not re.search(r"(src|href)=\"(?!data:|#)", outside)
    for condition in plan.conditions(["regression"], SMALL):
        assert (
            condition.folder(tmp_path) / "regression" / condition.teacher / "curves.png"
        ).exists()
    assert (tmp_path / "figures" / "main.pdf").exists()

    results = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nc")}
    assert len(results) == 7  # six experiments and a sweep
    monkeypatch.setattr(jobs.theory, "panel", None)  # existing results are not computed again
    made = []
    monkeypatch.setattr(
        _work._report,
        "publish",
        lambda report, out, files=True: made.append(report["sections"]) or out,
    )
    reproduce(["regression"], quick=True, out=tmp_path)
    made = made[-1:]
    monkeypatch.setattr(jobs.experiments, "run", None)
    reproduce(quick=True, out=tmp_path, report_only=True)
    assert [len(sections) for sections in made] == [page.count("<section ")] * 2
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nc")} == results


def test_processes_share_the_tasks_and_the_report_fills_up(monkeypatch, tmp_path):
    """Two tasks in two processes: the same numbers as here, the first figure and a page before the
    end.
    """
    scale = SMALL._replace(theory=(), sweeps=(), random=())
    monkeypatch.setattr(_work, "QUICK", scale)
    monkeypatch.setattr(plan, "STARTS", STARTS[:1])
    monkeypatch.setattr(_work, "SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr(_work, "REPORTING", 1e9)
    pages, publish = [], _work._report.publish

    def published(report, out, files=True):
        pages.append(report["warning"])
        first_or_last = len(pages) == 1 or not report["warning"].startswith("Still computing")
        return publish(report, out, files=files) if first_or_last else out

    monkeypatch.setattr(_work._report, "publish", published)
    said = []
    report = reproduce(
        ["regression", "gaussian"],
        quick=True,
        out=tmp_path,
        workers=2,
        platform="cpu",
        say=said.append,
    )
    assert said[0] in [
        f"first figure: {tmp_path / task / 'cooperative/curves.png'}"
        for task in ("regression", "gaussian")
    ]
    assert "is updated" in said[1]
    assert len(pages) == 4
    assert pages[0].startswith("Still computing: ")
    assert not pages[-1].startswith("Still computing")
    assert "gaussian" in report.read_text()
    jobs.run_one(Condition("uniform", "gaussian", "adversarial"), scale, tmp_path / "here", print)
    there, here = (
        load_curves(out / "gaussian/adversarial/curves.nc") for out in (tmp_path, tmp_path / "here")
    )
    assert (there["distance"] == here["distance"]).all()


def test_what_goes_beyond_the_paper_has_a_section(small, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "BEYOND", ("imt", "ital-adaptive"))
    condition = Condition("uniform", "regression", "switching")
    jobs.experiments.run(plan.beyond_settings(condition, SMALL), tmp_path / jobs.BEYOND, draw=False)
    data = _work.collect(SMALL, tmp_path)
    assert list(data.beyond) == [condition]
    assert not data.experiments
    _, table, trust = blocks_of("beyond", in_context(data, SMALL, tmp_path))
    assert table["heads"] == ["Task", "Teacher", "IMT", "ITAL adaptive"]
    assert trust["name"] == "trust"
    empty = _work.collect(SMALL, tmp_path / "empty")
    assert not blocks_of("beyond", in_context(empty, SMALL, tmp_path))


def tables_of_losses(data, scale, out):
    """The tables in the part about the only task."""
    _, task = blocks_of("tasks", in_context(data, scale, out))
    return [block for block in task["blocks"] if block["kind"] == "table"]


def test_equations_are_taught_with_both_losses_of_the_target_and_the_report_shows_both(tmp_path):
    scale = SMALL._replace(seeds=1, steps=200, equations=1)
    planned = jobs.planned(["regression", "equation-40"], scale, everything=False)
    cooperative, adversarial = (job.condition for job in planned if job.kind == "zero loss")
    assert (cooperative.task, cooperative.teacher, adversarial.teacher) == (
        "equation-40",
        "cooperative",
        "adversarial",
    )
    own = replace(plan.settings(cooperative, scale), methods=plan.BY_LOSS)
    zero = plan.zero_loss_settings(cooperative, scale)
    assert (own.teacher_loss, zero.teacher_loss, own.equations, zero.methods) == (
        None,
        "zero",
        1,
        ("imt", "ital"),
    )
    taught = [
        jobs.experiments.run(made, tmp_path / str(i), draw=False)
        for i, made in enumerate((own, zero))
    ]
    evidence = [Evidence(cooperative, outcome.task, outcome.curves) for outcome in taught]
    data = Data(evidence[:1], zero_loss=evidence[1:])
    (table,) = tables_of_losses(data, scale, tmp_path)
    assert [row[:2] for row in table["rows"]] == [["cooperative", "IMT"], ["cooperative", "ITAL"]]
    assert table["heads"][2:4] == ["Distance, own", "Distance, zero"]
    ends = [float(one.curves["distance"].sel(learner="ital").values[0, -1]) for one in evidence]
    assert [float(value) for value in table["rows"][1][2:4]] == pytest.approx(ends, rel=1e-2)
    assert ends[0] != ends[1]
    assert not tables_of_losses(Data(evidence[:1]), scale, tmp_path)


def test_results_of_another_loss_or_exam_are_no_part_of_a_report(tmp_path):
    scale = SMALL._replace(seeds=1, steps=2, equations=1)
    condition = Condition("uniform", "equation-40", "cooperative")
    made = replace(plan.zero_loss_settings(condition, scale), eval_every=None)
    jobs.experiments.run(made, tmp_path, draw=False)
    wanted = replace(plan.settings(condition, scale), methods=plan.BY_LOSS)
    finished = lambda settings: _work.finished(condition, settings, tmp_path)  # noqa: E731
    assert finished(made) is not None
    assert finished(wanted) is None
    assert finished(replace(made, equations=2)) is None


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_an_empty_folder_holds_nothing_yet(scale, tmp_path):
    """A full run includes tasks whose features the user has to build."""
    data = _work.collect(scale, tmp_path)
    assert not data.experiments
    assert not data.theory


def test_a_report_of_nothing_is_refused(small, tmp_path):
    with pytest.raises(InputError, match="no results of a quick run"):
        reproduce(quick=True, out=tmp_path, report_only=True)
    assert not list(tmp_path.iterdir())


def test_what_else_is_in_the_folder_is_in_the_report(small, tmp_path):
    data = _work.collect(SMALL, tmp_path)
    assert not data.experiments
    jobs.run_one(Condition("uniform", "regression", "adversarial"), SMALL, tmp_path, print)
    assert list(_work.collect(SMALL, tmp_path).experiments) == [
        Condition("uniform", "regression", "adversarial")
    ]
    assert not _work.collect(SMALL._replace(steps=21), tmp_path).experiments
    assert not _work.collect(SMALL._replace(seeds=3), tmp_path).experiments


def test_all_tasks_both_starts_and_teachers_are_planned():
    every = plan.conditions(plan.TASKS, plan.FULL)
    assert len({condition.task for condition in every}) == 12
    assert {condition.start for condition in every} == set(STARTS)
    assert {condition.teacher for condition in every} == {"cooperative", "adversarial", "random"}
    for condition in every:
        settings = plan.settings(condition, plan.FULL)
        assert (settings.seeds, settings.steps) == (20, 2000)
        expected = 3 if condition.teacher == "random" else 10
        assert len(settings.methods) == expected


def test_experiments_of_every_kind_differ_from_the_papers_only_where_they_say():
    """The paper's table of settings again: η is the paper's, except where a network is taught."""
    for scale in (FULL, QUICK):
        for start, task in (
            ("uniform", "regression"),
            ("normal:0.1", "equation-40"),
            ("uniform", plan.NEURAL),
        ):
            condition = Condition(start, task, "cooperative")
            paper = plan.settings(condition, scale)
            assert (paper.lr, paper.init) == (0.001, None if start == "uniform" else start)
            assert paper.eval_every == (200 if task == "equation-40" and scale.quick else None)
            beyond = {"lr": 0.05 if task == plan.NEURAL else 0.001, "methods": plan.BEYOND}
            if scale.quick and task != plan.NEURAL:
                beyond["methods"] = tuple(
                    name for name in plan.BEYOND if name not in learners.CONTROLS
                )
            assert plan.beyond_settings(condition, scale) == replace(paper, **beyond)
            assert plan.matrix_settings(condition, scale) == replace(
                paper, methods=tuple(ital.figures.ASSUMED)
            )
            ends = {"methods": ("imt", "ital"), "teacher_loss": "zero", "eval_every": scale.steps}
            assert plan.zero_loss_settings(condition, scale) == replace(paper, **ends)


def test_beliefs_are_taught_on_every_task_that_they_can_hold():
    """One start and one teacher; fewer seeds where a belief has many numbers."""
    found = plan.evidence_conditions(plan.PAPER, FULL)
    assert [condition.task for condition in found] == [
        name for name in plan.PAPER if not name.startswith("tiny-imagenet")
    ]
    assert {(condition.start, condition.teacher) for condition in found} == {
        ("uniform", "cooperative")
    }
    for condition in found:
        made = plan.evidence_settings(condition, FULL)
        assert (made.methods, made.steps, made.lr) == (plan.BELIEFS, 200, 0.001)
        assert made.seeds == (5 if plan.NUMBERS[condition.task] > 200 else 20)
        assert plan.evidence_seconds(condition, FULL) > 0
    jobs_of_beliefs = [
        job for job in jobs.planned(plan.TASKS, FULL, everything=True) if job.kind == "evidence"
    ]
    assert [job.condition for job in jobs_of_beliefs] == found


@pytest.mark.parametrize("name", plan.TASKS)
def test_the_plan_knows_how_many_numbers_a_learner_has(name):
    """A belief holds matrices of all pairs of them."""
    task = tasks.make(name)
    start = task.rules.start(jax.random.key(0), task.init, task.world(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(start)) == plan.NUMBERS[name]


def test_beliefs_have_a_section_of_the_report(tmp_path):
    scale = QUICK._replace(seeds=2, evidence_steps=100)
    condition = Condition("uniform", "irl-dense", "cooperative")
    made = plan.evidence_settings(condition, scale)
    jobs.experiments.run(made, tmp_path / jobs.EVIDENCE, draw=False)
    data = _work.collect(scale, tmp_path)
    assert list(data.evidence) == [condition]
    context = in_context(data, scale, tmp_path)
    _, figure, table, words = blocks_of("evidence", context)
    assert figure["name"] == "evidence"
    assert figure["note"] == "quick run: 2 seeds, 100 steps"
    (row,) = table["rows"]
    means = [float(data.evidence[condition].final(method).mean()) for method in plan.BELIEFS]
    assert list(row[:4]) == ["irl-dense", "64", "2", "100"]
    assert [float(value) for value in row[4:6]] == pytest.approx(means, rel=1e-2)
    assert float(row[6]) == pytest.approx(means[1] / means[0], rel=1e-2)
    assert "tiny-imagenet-lite0 (2200)" in words["words"]
    empty = _work.collect(scale, tmp_path / "empty")
    assert not blocks_of("evidence", in_context(empty, scale, tmp_path))


def test_the_panel_of_the_theory_is_of_the_scale_and_start_that_it_says(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        jobs.theory, "panel", lambda *where, **size: asked.append((where, size)) or {"is": "made"}
    )
    scale = SMALL._replace(theory_seeds=3)
    for _ in range(2):  # the second is read
        for start in STARTS:
            assert jobs.theory_of(start, "regression", scale, tmp_path, compute=True) == {
                "is": "made"
            }
    size = {"seeds": 3, "steps": 40}
    assert asked == [(("regression", None), size), (("regression", "normal:0.1"), size)]
    assert jobs.theory_of("uniform", "gaussian", scale, tmp_path, compute=False) is None
    for other in (scale._replace(theory_seeds=2), scale._replace(theory_steps=41)):
        assert jobs.theory_of("uniform", "regression", other, tmp_path, compute=False) is None


def test_unknown_tasks_and_those_without_their_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="did you mean 'regression'"):
        reproduce(["regresion"], out=tmp_path)
    with pytest.raises(InputError, match="ital features build tiny-imagenet-vgg"):
        reproduce(["tiny-imagenet-13"], out=tmp_path)
    assert not list(tmp_path.iterdir())


def figures_of(made, section):
    (blocks,) = [part["blocks"] for part in made["sections"] if part["id"] == section]
    return {figure["name"]: figure for figure in figures_in(blocks)}


def test_vgg_is_in_the_report_once_its_features_are_built(tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path))
    # Which remembers the features of other tests.
    monkeypatch.setattr(plan, "_task", plan._task.__wrapped__)
    monkeypatch.setattr(learners, "PAPER", ("imt", "ital"))
    monkeypatch.setattr(learners, "CONTROLS", ())
    assert plan.chosen(()) == list(plan.TASKS)
    write_views(tmp_path, "tiny-imagenet-vgg")
    assert plan.chosen(()) == list(plan.PAPER)
    condition, out = Condition("uniform", "tiny-imagenet-13", "cooperative"), tmp_path / "out"
    jobs.run_one(condition, SMALL, out, print)
    results_alone = tmp_path / "of another machine", "tiny-imagenet-13"
    for features, title in ((tmp_path, "Tiny ImageNet, teacher VGG-13"), results_alone):
        monkeypatch.setenv("ITAL_FEATURES", str(features))
        data = _work.collect(SMALL, out)
        assert list(data.experiments) == [condition]
        made = _report.build_report(in_context(data, SMALL, out, 0.0))
        (main,) = figures_of(made, "main-figure").values()
        assert [panel["title"] for panel in main["panels"]] == [title]
        assert list(figures_of(made, "tasks")) == ["tiny-imagenet-13-cooperative-uniform"]
    write_views(tmp_path, "tiny-imagenet-vgg", rows=41)
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path))
    assert not _work.collect(SMALL, out).experiments  # made with other features


def test_tasks_that_are_not_the_papers_have_a_section_and_no_say_in_its_claims(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(
        tasks.REGISTRY, "mine", lambda: tasks.regression(dim=3, points=30)._replace(name="mine")
    )
    assert plan.chosen(["mine", "regression"]) == ["mine", "regression"]
    with pytest.raises(InputError, match="task 'irl' needs a map"):
        plan.chosen(["irl"])
    result = ital.teach("mine", "omniscient", ["imt", "imt-matched"], seeds=3, steps=10)
    result.save(tmp_path / "mine" / "omniscient")
    table = ital.Result(result.curves, result.task._replace(name="table", title="A table"), {})
    table.save(tmp_path / "table" / "cooperative")
    (tmp_path / "file" / "random").mkdir(parents=True)
    # As from ital run --data: no description.
    save_curves(result.curves, tmp_path / "file" / "random" / "curves.nc")
    data = _work.collect(SMALL, tmp_path)
    findings = catalogue.judge_all(data)
    made = _report.build_report(in_context(data, SMALL, tmp_path, 0.0)._replace(findings=findings))
    shown = figures_of(made, "others")
    assert {name: figure["note"] for name, figure in shown.items()} == dict.fromkeys(
        ("file-random-uniform", "mine-omniscient-uniform", "table-cooperative-uniform"),
        "3 seeds, 10 steps",
    )
    assert all(figure["panels"] for figure in shown.values())
    assert not [check for row in _report.claims(made) for check in row["checks"]]
