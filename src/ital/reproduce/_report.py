"""The report: one page that stands by itself, claims first."""

import base64
import html
import os
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from ital import learners, tuning
from ital._version import __version__
from ital.figures import in_legend_order, save
from ital.reproduce import _figures
from ital.reproduce import _statistics as statistics
from ital.reproduce._claims import FAILS, HOLDS, IN_PART, NEEDS_PEOPLE, NO_DATA, Finding, duration, label
from ital.reproduce._data import Data, Experiment
from ital.reproduce._plan import STAND_INS, STARTS, TASKS, TEACHERS, Scale

CLASSES = {HOLDS: "holds", IN_PART: "in-part", FAILS: "does-not-hold", NEEDS_PEOPLE: "open", NO_DATA: "open"}
CONTROLS = ("batch", "imt", "ital", "imt-matched", "batch-matched")
TITLE = "Iterative Teacher-Aware Learning, reproduced"
OPEN_BEFORE_PRINT = "addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))"


def page(data: Data, findings: list[Finding], scale: Scale, out: Path, took: float, notes: Sequence[str] = ()) -> str:
    """The whole page; figures are also written to OUT/figures."""
    style = resources.files("ital.reproduce").joinpath("report.css").read_text("utf-8")
    sections = {
        "Claims": claims(findings),
        "Awareness or longer steps?": controls(data, scale, out),
        "Main figure": main(data, scale, out),
        "Tasks": tasks(data, out),
        "Adversary": adversary(data, scale, out),
        "Random teacher": random(data, scale, out),
        "Human study": study(data),
        "Theory": theory(data, scale, out),
        "Tuned step sizes": sweeps(data, out),
        "Tables": tables(data),
        "Settings and times": settings(data, scale, took, notes),
        "Run it again": again(scale, out),
    }
    sections = {name: body for name, body in sections.items() if body}
    links = "".join(f'<a href="#{anchor(name)}">{text(name)}</a>' for name in sections)
    body = "".join(f'<h2 id="{anchor(name)}">{text(name)}</h2>{content}' for name, content in sections.items())
    lead = (
        "Every figure and table of the paper, measured anew, beside what the paper says of them. Each claim below is "
        "judged by a rule that the data could have failed."
    )
    banner = f'<p class="banner">{text(quick_note(scale))}</p>' if scale.quick else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style><script>{OPEN_BEFORE_PRINT}</script></head><body>"
        f'<header><h1>{TITLE}</h1><p class="lead">{lead}</p>{banner}<nav>{links}</nav></header>'
        f"<main>{body}</main><footer>Made by ital {__version__}. This page needs no network and no other file.</footer>"
        "</body></html>\n"
    )


def quick_note(scale: Scale) -> str:
    """What a reader of a quick report must know."""
    return (
        f"Quick run: {scale.seeds} seeds and {scale.steps} steps instead of 20 and 2000. It shows the shape of things. "
        "Verdicts may change in the full run, which is: ital reproduce."
    )


def claims(findings: list[Finding]) -> str:
    """One row per claim, with its checks inside."""
    counts = "".join(
        f'<li class="{CLASSES[verdict]}"><b>{number}</b>{text(verdict)}</li>'
        for verdict in CLASSES
        if (number := sum(one.verdict == verdict for one in findings))
    )
    rows = "".join(_claim(one) for one in findings)
    how = (
        "A claim holds if it does on every task it is about and from both starts: uniform, as in Algorithm 1, and "
        "normal with deviation 0.1, as in the authors' later code. One that depends on the task or on the start holds "
        "in part. Tests are paired over seeds, p-values adjusted within a claim (Holm). Open a row for its rule and "
        "all its numbers."
    )
    return f'<p>{how}</p><ul class="counts">{counts}</ul><div class="claims">{rows}</div>'


def _claim(one: Finding) -> str:
    rows = [
        (check.where, check.start, "yes" if check.holds else "no", check.numbers, p_value(check.p))
        for check in one.checks
    ]
    inside = f"<p><b>Rule.</b> {text(one.rule)}</p>"
    if rows:
        inside += table(("where", "start", "holds", "numbers", "p"), rows)
    return (
        f'<details class="claim"><summary><span class="name">{text(one.claim)}</span>'
        f'<span class="pill {CLASSES[one.verdict]}">{text(one.verdict)}</span>'
        f'<span class="said">{text(one.source.capitalize())}. {text(one.summary)}</span></summary>'
        f'<div class="inside">{inside}</div></details>'
    )


def controls(data: Data, scale: Scale, out: Path) -> str:
    """The fair controls: figure, table, and what to make of them."""
    there = list(data.every("cooperative", *CONTROLS))
    if not there:
        return ""
    rows = []
    ahead: dict[str, int] = dict.fromkeys(("imt-matched", "batch-matched"), 0)
    for one in there:
        left = {method: float(one.left(method).mean()) for method in CONTROLS}
        best = min(left.values())
        ahead = {name: number + (left[name] < left["ital"]) for name, number in ahead.items()}
        cells = [Marked(f"{value:.3g}", value == best) for value in left.values()]
        distances = [f"{float(one.final(method).mean()):.3g}" for method in ("ital", "imt-matched", "batch-matched")]
        rows.append((one.cell.task, one.cell.start, *cells, *distances))
    names = [label(there[0], method) for method in CONTROLS]
    explain = (
        "An aware step is longer than a naive one, so being ahead of IMT at one step size does not show that a learner "
        "has understood the teacher's choice. The controls go exactly as far as ITAL would from where they are, with "
        "the same mini-batch, choice and β, but straight along the gradient of the chosen example (IMT matched) or the "
        "mean gradient of the mini-batch (Batch matched)."
    )
    found = (
        f"In {ahead['imt-matched']} of {len(there)} settings IMT matched ends closer to the target than ITAL, in "
        f"{ahead['batch-matched']} of {len(there)} Batch matched does. Where a control is ahead, the gain of ITAL over "
        "IMT at the paper's step size is the length of its steps, not its direction."
    )
    if ahead["batch-matched"]:
        found += (
            " Why a plain gradient can win: the aware step goes down the loss of the chosen example and up those of "
            "the others, whose labels are right as well. What is unlearned there has to be learned again, and where "
            "labels follow from the target without noise, the choice says nothing that they do not."
        )
    pictures = "".join(
        picture(_figures.controls_figure(data, start, scale.note), f"controls-{name(start)}", out, (
            f"Distance left at the end ({start} start), as a share of the distance at the start, mean ± SE over seeds. "
            "Where there is a part of the parameters that no example can move, it is left out."
        ))
        for start in _figures.starts_of(data)
    )  # fmt: skip
    heads = ("task", "start", *names, *(f"{one}: distance" for one in names[2:]))
    caption = "<p>Share of the distance that is left, the best in bold; then final distances.</p>"
    return f"<p>{explain}</p><p>{text(found)}</p>{pictures}{caption}{table(heads, rows, numbers_from=2)}"


def main(data: Data, scale: Scale, out: Path) -> str:
    """The paper's main figure."""
    caption = (
        "The paper's main figure. Left: distance to the target with a cooperative teacher whose features are fewer "
        "than the learner's; uniform start. The Tiny ImageNet panel is that of the Lite networks, which stand for VGG."
    )
    if data.study is not None:
        caption += (
            " Right: the study's arms with SIMULATED teachers: decrease of the distance to the true rewards, and "
            "expected reward; stars: ITAL against IMT, paired t-test."
        )
    return picture(_figures.main_figure(data, scale.note), "main", out, caption)


def tasks(data: Data, out: Path) -> str:
    """The supplement's figures, task by task, from both starts; and reward maps where there are any."""
    content = ""
    for task in TASKS:
        starts = [one for start in STARTS if (one := data.get(start, task, "cooperative"))]
        for i, one in enumerate(starts):
            content += f"<h3>{text(one.task.title)}</h3>" if i == 0 else ""
            drawn = one.cell.folder(out) / task / "cooperative" / "curves.png"
            caption = f"{one.task.title}: cooperative teacher, {one.cell.start} start. {_in_words(one)}"
            shown = image(drawn.read_bytes(), caption)
            content += shown if i == 0 else folded(shown)
        maps = out / task / "cooperative" / "pictures.png"
        if starts and maps.exists():
            content += image(
                maps.read_bytes(), "What a naive and an aware learner think the rewards are, and the truth."
            )
    return content


def _in_words(one: Experiment) -> str:
    shares = [
        f"{label(one, method)} {float(one.left(method).mean()):.3g}" for method in ("batch", "imt", "ital", "ital-2")
    ]
    return f"Left of the distance at the end: {', '.join(shares)}."


def adversary(data: Data, scale: Scale, out: Path) -> str:
    """The adversarial figure, from both starts."""
    content = ""
    for i, start in enumerate(_figures.starts_of(data)):
        shown = picture(
            _figures.adversarial_figure(data, start, scale.note), f"adversarial-{name(start)}", out,
            f"Adversarial teacher, {start} start: all panels of all tasks. Batch and SGD ignore the choice.",
        )  # fmt: skip
        content += shown if i == 0 else folded(shown)
    return content


def random(data: Data, scale: Scale, out: Path) -> str:
    """The random teacher."""
    caption = (
        "A teacher who chooses at random. The paper finds no gain and a larger spread with its human-study learners; "
        "here ITAL may still be ahead of IMT, because its steps are longer."
    )
    return picture(_figures.random_figure(data, scale.note), "random", out, caption)


def study(data: Data) -> str:
    """The simulated arms of the human study."""
    if data.study is None:
        return ""
    captions = {
        "bars": "What the robots learned, per map and arm.",
        "curves": "Learning curves per map.",
        "control": "Is it only the length of the steps? Naive robots with the aware robots' step lengths.",
    }
    lead = f"SIMULATED: {data.study.participants} programs per arm chose the arrows, no person took part."
    control = data.study.control
    if control:
        lead += (
            f" Over all maps the distance falls by {control['mean_first']:.2f} for machine-taught ITAL and by "
            f"{control['mean_second']:.2f} for the control with steps of the same length."
        )
    shown = "".join(image(data.study.pictures[one], f"{caption} Simulated.") for one, caption in captions.items())
    return f"<p>{text(lead)}</p>{shown}"


def theory(data: Data, scale: Scale, out: Path) -> str:
    """Theorem 1, its corollary and the sharpness of q."""
    if not data.theory:
        return ""
    rows = []
    for (start, task), panel in data.theory.items():
        taught = panel["taught"]
        for beta, held, improved, left in zip(
            taught["beta"], taught["conditions"], taught["improved"], taught["left"], strict=True
        ):
            own = " (the task's)" if beta == taught["task_beta"] else ""
            rows.append((task, start, f"{beta:g}{own}", f"{held:.1%}", f"{improved:.1%}", f"{left:.3f}"))
    heads = ("task", "start", "β", "conditions hold", "aware step better", "distance left")
    sampled = [
        (
            task, start, f"{panel['guarantee']['held'] / panel['guarantee']['steps']:.1%}",
            f"{panel['guarantee']['where_held'][-1]:.1%}" if panel["guarantee"]["where_held"] else "–",
            f"{panel['monotonicity_violations']:.2%}", f"{np.median(panel['sharpness']['auto']):.3g}",
            f"{panel['sharpness']['task_beta']:g}", f"{panel['sharpness']['at_task_beta']:.3f}",
        )
        for (start, task), panel in data.theory.items()
    ]  # fmt: skip
    more = (
        "task",
        "start",
        "conditions hold",
        "better at largest β",
        "monotonicity violated",
        "auto β",
        "task's β",
        "its sharpness",
    )
    explain = (
        "Theorem 1 promises: if the chosen example also maximises the volume that the learner imagines, and beats the "
        "runner-up in the right direction, then for β large enough the aware step is at least as good as the naive "
        "one. Large enough matters. At moderate β the step may overshoot; at huge β it improves, but hardly moves."
    )
    return (
        f"<p>{explain}</p>"
        + picture(_figures.theory_figure(data, scale.note), "theorem", out, (
            "Share of sampled steps on which the aware step ends nearer to the target than the naive one, over β, "
            "where the conditions of Theorem 1 hold (lines) and where they do not (dotted)."))
        + picture(_figures.sharpness_figure(data, scale.note), "sharpness", out, (
            "How much of q lies on its favourite example at the start, over β. The dot is what --beta auto takes, the "
            "dashed line the paper's value."))
        + "<h3>On sampled steps</h3>" + table(more, sampled, numbers_from=2)
        + "<h3>While learning, with diagnostics on</h3>" + table(heads, rows, numbers_from=2)
    )  # fmt: skip


def sweeps(data: Data, out: Path) -> str:
    """Maps of every step size and β, and each method at its best."""
    content, rows = "", []
    for cell, grid in data.sweeps.items():
        for found in (tuning.judge(grid, step) for step in tuning.judged_steps(grid)):
            best = [f"{one} {one.mean:.3g}{'*' if one.edge else ''}" for one in found.best]
            rows.append((cell.task, cell.start, found.step, ", ".join(best)))
        file = cell.folder(out) / cell.task / cell.teacher / "sweep.png"
        content += image(file.read_bytes(), f"{cell.task}, {cell.start} start: every η and β.")
    if not content:
        return ""
    lead = (
        "Each method at its own best step size and β, instead of one step size for all: distances from best to worst. "
        "A star means that the best setting lies at the end of its range, so that the grid and not the method decides."
    )
    return f"<p>{lead}</p>{table(('task', 'start', 'step', 'best settings'), rows)}{content}"


def tables(data: Data) -> str:
    """The last step in numbers, a table per experiment."""
    content = ""
    for cell, one in data.experiments.items():
        start = float(one.curve(str(one.curves["method"].values[0]))[1][:, 0].mean())
        summary = f"{text(cell.title)}: {one.main.replace('_', ' ')} at the start {start:.3g}"
        content += f'<details class="more"><summary>{summary}</summary>{_numbers(one)}</details>'
    lead = (
        "Mean ± standard error over seeds at the last step, 95 % bootstrap interval of the mean, interquartile mean, "
        "median steps to 50, 10 and 1 % of the distance at the start (– if half the seeds never get there), and how "
        "probable it is that a seed of the method ends closer than one of IMT."
    )
    return f"<p>{lead}</p>{content}"


def _numbers(one: Experiment) -> str:
    rows = []
    others = [metric for metric in one.panels() if metric != "distance"]
    for method in in_legend_order([str(name) for name in one.curves["method"].values]):
        final = one.final(method)
        found = statistics.estimate(final)
        steps, values = one.curve(method)
        reached = [statistics.steps_to_reach(steps, values, share) for share in statistics.SHARES]
        cells = [f"{np.median(r[np.isfinite(r)]):.0f}" if np.isfinite(r).mean() > 0.5 else "–" for r in reached]
        better = statistics.probability_of_improvement(final, one.final("imt")) if one.has("imt") else float("nan")
        more = []
        for metric in others:
            last = one.curve(method, metric)[1][:, -1]
            more.append(
                f"{last.mean():.3g} ± {last.std(ddof=1) / np.sqrt(len(last)):.2g}"
                if len(last) > 1
                else f"{last.mean():.3g}"
            )
        rows.append((
            label(one, method), f"{found.mean:.3g} ± {found.error:.2g}", f"{found.low:.3g} … {found.high:.3g}",
            f"{found.iqm:.3g}", *cells, f"{better:.2f}", *more,
        ))  # fmt: skip
    heads = ("method", one.main.replace("_", " "), "95 %", "IQM", "to 50 %", "to 10 %", "to 1 %", "P(better than IMT)")
    return table((*heads, *(metric.replace("_", " ") for metric in others)), rows, numbers_from=1)


def settings(data: Data, scale: Scale, took: float, notes: Sequence[str]) -> str:
    """β and η, versions, and how long everything took."""
    rows = []
    for task in dict.fromkeys(cell.task for cell in data.experiments):
        own = [one for one in data.experiments.values() if one.cell.task == task]
        attrs = own[0].curves.attrs
        decay = float(attrs["beta_decay"])
        beta = f"±{abs(float(attrs['beta'])):g}" + (f"·(1−{decay:g})ᵗ" if decay else "")
        seconds = sum(float(one.curves.attrs["seconds"]) for one in own)
        rows.append((
            task, beta, f"{float(attrs['lr']):g}", attrs["batch_size"], attrs["steps"], own[0].curves.sizes["seed"],
            ", ".join(dict.fromkeys(str(one.curves.attrs["init"]) for one in own)), len(own), duration(seconds),
        ))  # fmt: skip
    heads = ("task", "β", "η", "batch", "steps", "seeds", "starts", "experiments", "computing")
    attrs = next(iter(data.experiments.values())).curves.attrs if data.experiments else {}
    versions = {
        "ital": __version__, "Python": platform.python_version(), "jax": attrs.get("jax_version", ""),
        "numpy": attrs.get("numpy_version", ""), "scipy": metadata.version("scipy"), "device": attrs.get("device", ""),
        "cores": os.cpu_count(), "system": platform.platform(),
    }  # fmt: skip
    stands = "; ".join(f"{instead} stands for {missing}" for missing, instead in STAND_INS.items())
    said = [
        "β is positive for helpful and negative for adversarial teachers. "
        f"The random teacher, on {', '.join(scale.random)}, gets the positive one.",
        f"Tasks that need files the user builds are left out: {stands}.",
        f"This call took {duration(took)} in all; computing times are those of the calls that computed.",
        *notes,
    ]
    listed = "".join(f"<li>{text(line)}</li>" for line in said)
    return (
        table(heads, rows, numbers_from=1) + f"<ul>{listed}</ul>" + table(tuple(versions), [tuple(versions.values())])
    )


def again(scale: Scale, out: Path) -> str:
    """The commands behind every part."""
    flag = " --quick" if scale.quick else ""
    one = f" --seeds {scale.seeds} --steps {scale.steps}" if scale.quick else ""
    lines = [
        ("everything; what is there is kept", f"ital reproduce{flag} --out {out}"),
        ("one task, all teachers, both starts, and the report", f"ital reproduce regression{flag} --out {out}"),
        *(
            (f"one experiment: {teacher} teacher", f"ital run regression --teacher {teacher}{one} --out {out}")
            for teacher in TEACHERS
        ),
        (
            "from the other start",
            f"ital run regression --init {STARTS[1]}{one} --out {out}/{STARTS[1].replace(':', '-')}",
        ),
        ("the controls", f"ital run regression --methods ital,{','.join(learners.CONTROLS)}{one} --out {out}"),
        ("tuned step sizes", "ital sweep regression --lr 0.001,0.01,0.1 --beta 0,50,500,5000"),
    ]
    return "<pre>" + "\n".join(f"# {text(what)}\n{text(command)}" for what, command in lines) + "</pre>"


class Marked(str):
    """A table cell that may be the best of its row."""

    best: bool

    def __new__(cls, value: str, best: bool) -> "Marked":
        """A text with a mark."""
        made = super().__new__(cls, value)
        made.best = best
        return made


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], numbers_from: int | None = None) -> str:
    """A table that scrolls by itself where the page is narrow; columns of numbers are set right."""

    def kind(i: int, value: Any = "") -> str:
        names = ["number"] if numbers_from is not None and i >= numbers_from else []
        names += ["best"] if getattr(value, "best", False) else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f"<th{kind(i)}>{text(one)}</th>" for i, one in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kind(i, value)}>{text(value)}</td>" for i, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def picture(figure: Any, file: str, out: Path, caption: str) -> str:
    """A figure in the page, written to OUT/figures as well; nothing where there is none."""
    if figure is None:
        return ""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    saved = save(figure, folder / file)
    return image(saved[0].read_bytes(), caption)


def folded(content: str) -> str:
    """What is shown when asked for."""
    return f'<details class="more"><summary>From the other start</summary>{content}</details>' if content else ""


def image(content: bytes, caption: str) -> str:
    """A PNG inside the page, made small."""
    source = base64.b64encode(_figures.smaller(content)).decode()
    return (
        f'<figure><img loading="lazy" alt="{html.escape(caption, quote=True)}" src="data:image/png;base64,{source}">'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def p_value(p: float) -> str:
    """p as it is printed in papers."""
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def name(start: str) -> str:
    """A start in a file's name."""
    return start.replace(":", "-")


def anchor(title: str) -> str:
    """A title as the target of a link."""
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower()).strip("-")


def text(value: Any) -> str:
    """Anything as text of a page."""
    return html.escape(str(value), quote=False)
