"""Breaks the core in about a hundred small ways, one at a time, and checks whether the tests notice.

python tests/mutants.py [--list] [--only FILE] [--workers N]

Each mutant replaces one snippet of a source file in a copy of the tree and runs the tests that guard it, up to the
first failure. A mutant that passes all of them has survived: a test is missing. Not collected by pytest;
test_mutants.py keeps the table in step with the source.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src") / "ital"


class Mutant(NamedTuple):
    """``before`` occurs once in ``file``; ``tests`` are what should notice ``after`` (default: the file's guards)."""

    file: str
    before: str
    after: str
    tests: tuple[str, ...] = ()


def named(file, *names):
    """Tests of a file by name, without their ``test_``."""
    return tuple(f"tests/{file}::test_{name}" for name in names)


LOOP = named(
    "test_teaching.py",
    "the_loop_is_algorithm_1_step_by_step[small_classes-cooperative]",
    "the_loop_is_algorithm_1_step_by_step[small_numbers-adversarial]",
)
GOLDEN = named(
    "test_teaching.py", "golden_curves[small-classes/cooperative]", "golden_curves[small-numbers/omniscient]"
)
WALK = named("test_teaching.py", "the_loop_is_algorithm_1_step_by_step[small_map-cooperative]")
SHARES = named("test_teaching.py", "diagnostics_are_the_shares_of_steps_on_which_theorem_1_holds")
LINES = named("tasks/test_irl.py", "references_are_the_teachers_return_and_the_mean_that_nothing_moves")
SHARP = named("tasks/test_irl.py", "the_papers_maps_are_planned_as_sharply_as_it_says")
LENGTH = named("test_steps.py", "with_a_length_every_method_takes_steps_of_that_length[imt]")
TIES = named(
    "test_teaching.py",
    "copies_are_what_the_task_drew_twice",
    "the_first_of_several_copies_is_chosen_however_volumes_are_rounded",
)
OWN = named("test_own_parts.py", "own_task_teacher_learner_and_loss")

# What guards each file, from quick to slow.
GUARDS = {
    "volume.py": ("tests/test_volume.py",),
    "gradients.py": ("tests/test_gradients.py",),
    "losses.py": ("tests/test_losses.py",),
    "steps.py": named(
        "test_steps.py",
        "a_step_of_one_length_is_that_long_and_in_the_wanted_direction",
        "a_safe_step_is_what_it_says",
        "a_length_that_decays_falls_linearly_to_nothing",
        "an_unsafe_beta_is_made_safe",
        "safe_steps_are_the_same_where_nothing_is_at_risk",
    ),
    "rationality.py": ("tests/test_rationality.py",),
    "learners/_two_step.py": ("tests/learners/test_two_step.py",),
    "learners/_full.py": ("tests/learners/test_full.py",),
    "learners/_matched.py": ("tests/learners/test_matched.py",),
    "learners/_safe.py": named("test_steps.py", "an_unsafe_beta_is_made_safe"),
    "learners/_adaptive.py": named(
        "learners/test_adaptive.py",
        "its_beta_is_found_as_if_the_teacher_helped",
        "scores_are_their_definitions",
        "weights_are_those_of_a_hidden_markov_chain",
        "beta_grows_as_the_volumes_come_closer_together",
        "high_places_are_trusted_low_ones_are_not_and_any_are_ignored",
        "trust_outlives_choices_that_cannot_be_predicted_but_not_those_that_contradict",
    ),
    "teachers/": ("tests/teachers/test_base.py", "tests/teachers/test_teachers.py"),
    "teaching/": named(
        "test_teaching.py",
        "random_numbers_of_start_steps_and_auto_are_streams_of_their_own",
        "learners_are_told_what_fits_teacher_and_task",
        "steps_are_counted_from_zero_and_signals_averaged_over_those_taken",
        "steps_start_at_zero_and_end_at_the_last",
        "examples_are_copies_only_where_all_that_was_drawn_is_equal",
        "the_tasks_own_beta_and_its_decay_are_used",
    ),
    "tasks/_pool.py": named(
        "tasks/test_tasks.py",
        "is_argmax_follows_argmax_in_ties_too",
        "label_noise_replaces_its_share_and_nothing_else",
        "full_label_noise_leaves_no_label",
        "the_teachers_volumes_are_their_formula",
        "the_floor_is_what_no_method_moves",
    ),
    "tasks/_regression.py": named(
        "tasks/test_tasks.py",
        "no_test_row_is_in_the_pool[regression]",
        "the_teachers_view_is_turned_and_nothing_else[regression]",
    ),
    "tasks/_gaussian.py": named(
        "tasks/test_tasks.py",
        "no_test_row_is_in_the_pool[gaussian]",
        "the_teachers_view_is_turned_and_nothing_else[gaussian]",
    ),
    "equation/_search.py": named("equation/test_search.py", "a_search_ends_after_thirty_steps"),
    "theory.py": named(
        "test_theory.py",
        "local_improvement_is_its_definition",
        "lipschitz_is_the_steepest_pair_and_copies_tell_nothing",
        "covering_radius_is_that_of_the_remotest_example",
        "the_error_allowed_turns_the_corollarys_density_around",
        "premises_have_a_closed_form_on_a_line",
    ),
    "mdp/": named(
        "test_mdp.py",
        "survival_is_the_largest_anywhere",
        "a_backup_is_its_formula",
        "grid_moves_as_the_paper_says",
        "where_nobody_dies_the_return_is_discounted",
        "expected_return_is_that_of_rollouts",
    ),
    "tasks/_irl": named(
        "tasks/test_irl.py",
        "the_teacher_sees_the_same_world_in_another_order",
        "measurements_are_their_definitions",
        "the_teachers_volumes_are_their_formula",
        "gradients_are_those_of_an_unrolled_iteration_and_of_central_differences",
    ),
}

MUTANTS = (
    # η² and η, the factor 2, the sign of progress
    Mutant("volume.py", "-(lr**2) * squared_norms", "-lr * squared_norms"),
    Mutant("volume.py", "2 * lr * progress", "lr * progress"),
    Mutant("volume.py", "losses - target_losses)", "target_losses - losses)"),
    # norms, the half and the cross term of the penalty, parameters of several leaves
    Mutant("gradients.py", "axis=-1) * x_squared_norms", "axis=-1) * jnp.sqrt(x_squared_norms)"),
    Mutant("gradients.py", "0.5 * l2 * squared_norm(weights)", "l2 * squared_norm(weights)"),
    Mutant("gradients.py", "2 * l2 * gradients.inner(weights)", "l2 * gradients.inner(weights)"),
    Mutant("gradients.py", "gradients.inner(v) + l2 * inner_product(weights, v)", "gradients.inner(v)"),
    Mutant("gradients.py", "l2 * jnp.sum(w), weights", "l2 * len(w), weights"),
    Mutant("gradients.py", "jax.tree.reduce(jnp.add, ", "jax.tree.reduce(jnp.maximum, "),
    # factors, signs, the shift of the exponentials
    Mutant("losses.py", "0.5 * jnp.sum((alpha - y) ** 2", "jnp.sum((alpha - y) ** 2"),
    Mutant("losses.py", "return alpha - y", "return y - alpha"),
    Mutant("losses.py", "largest + jnp.log(total) - jnp.take_along_axis(", "jnp.log(total) - jnp.take_along_axis("),
    Mutant("losses.py", "jnp.exp(alpha - largest[:, None])", "jnp.exp(alpha)"),
    # the length of the step k of n is L(1 − k/n), reach is the largest 2l/‖g‖, five tries, worse in both counts
    Mutant("steps.py", "lesson.step / lesson.steps", "(lesson.step + 1) / lesson.steps"),
    Mutant("steps.py", "reach = 2 * jnp.max(", "reach = jnp.max("),
    Mutant("steps.py", "reach = 2 * jnp.max(", "reach = 2 * jnp.min("),
    Mutant("steps.py", "jnp.mean(here.losses)) | (", "jnp.mean(here.losses)) & ("),
    Mutant("steps.py", "(state[0] <= HALVINGS)", "(state[0] < HALVINGS)"),
    Mutant("steps.py", "tries < HALVINGS, 0.5, 0.0", "tries < HALVINGS, 0.25, 0.0"),
    Mutant("steps.py", "length < largest * norm", "length < largest"),
    # the sign inside the search, the cap, copies of one example
    Mutant("rationality.py", "sharpness(sign * jnp.exp(middle)", "sharpness(jnp.exp(middle)"),
    Mutant("rationality.py", "most / (2 * lr))", "most)"),
    Mutant("rationality.py", "jnp.sum(jnp.where(same, q[:, None, :], 0.0), axis=-1)", "q"),
    # η², gradients after the literal step, what is in view, the form of the step, decay; what teachers are taken for
    Mutant("learners/_two_step.py", "-2 * beta * lr**2", "-2 * beta * lr"),
    Mutant("learners/_two_step.py", "Imagined(guess, there, volumes, naive)", "Imagined(guess, here, volumes, naive)"),
    Mutant("learners/_two_step.py", "return place < view", "return (place == 0) | (place > len(place) - view)"),
    Mutant("learners/_two_step.py", "jnp.exp(lesson.step * jnp.log1p", "jnp.exp((lesson.step + 1) * jnp.log1p"),
    Mutant("learners/_two_step.py", "add_scaled(params, -1.0, guess)", "add_scaled(guess, -1.0, params)"),
    Mutant("learners/_two_step.py", "guess = lesson.toward(params, naive)", "guess = naive"),
    Mutant("learners/_two_step.py", "q, imagined.naive, imagined.gradients", "q, imagined.guess, imagined.gradients"),
    Mutant("learners/_two_step.py", "situation.beta_decay if beta is None else 0.0", "situation.beta_decay"),
    Mutant("learners/_full.py", "mean=float(situation.batch_size)", "mean=1.0"),
    Mutant("learners/_matched.py", "settings._replace(literal=Literal(chosen=1.0))", "settings"),
    Mutant("learners/_safe.py", "within_reach(lesson, (), params, proposed.params)", "proposed.params"),
    Mutant("learners/_adaptive.py", ", likelihood(-places)])", ", likelihood(places)])"),
    Mutant("learners/_adaptive.py", "here.losses), here.inner(mean)", "here.losses), -here.inner(mean)"),
    Mutant("learners/_adaptive.py", "total * 3 * prior - memory.partial", "prior - memory.partial"),
    Mutant("learners/_adaptive.py", "settings.beta * sharper, ", "settings.beta / sharper, "),
    Mutant("learners/_adaptive.py", "imagined_volumes(situation.volume), 1.0)", "imagined_volumes(situation.volume))"),
    # signs, ties, the moment of the change
    Mutant("teachers/_adversarial.py", "sign=-1.0", "sign=1.0"),
    Mutant(
        "teachers/_base.py",
        "jnp.min(jnp.where(largest, jnp.arange(len(values)), len(values)))",
        "jnp.max(largest * jnp.arange(len(values)))",
    ),
    Mutant("teachers/_boltzmann.py", "weight=abs(beta)", "weight=beta"),
    Mutant("teachers/_boltzmann.py", "sign=math.copysign(1.0, rho)", "sign=1.0"),
    Mutant("teachers/_rational.py", "view.steps / 2", "view.steps"),
    Mutant("teachers/_rational.py", "view.step >= change", "view.step > change"),
    Mutant("teachers/_rational.py", "noise.lapse < settings.lapse", "noise.lapse > settings.lapse"),
    Mutant("teachers/_rational.py", "learner.volumes, settings))", "view.volumes, settings))"),
    Mutant("teachers/_rational.py", "jnp.where(weight == 0, 0.0, weight * volumes)", "weight * volumes"),
    Mutant("teachers/_rational.py", "settings.noise_after, settings.noise", "settings.noise, settings.noise_after"),
    Mutant("teachers/_rational.py", "numbers.noise == numbers.noise_after == numbers.lapse == 0", "True"),
    # streams of random numbers, the target, the number of a step, the last interval, what learners are told
    Mutant("teaching/_program.py", "AUTO, TEACHER = 0, 1, 2, 3", "AUTO, TEACHER = 0, 1, 1, 3"),
    Mutant("teaching/_step.py", "jax.random.randint(bystander, ", "jax.random.randint(teacher, ", GOLDEN[:1]),
    Mutant("teaching/_choose.py", "add_scaled(params, -1.0, target", "add_scaled(params, 1.0, target", GOLDEN[1:]),
    Mutant(
        "tasks/_base.py", "functools.reduce(jnp.logical_and, alike)", "functools.reduce(jnp.logical_or, alike)", TIES
    ),
    Mutant("teaching/_choose.py", "scene.feedback, *side)[drawn.first]", "scene.feedback, *side)", TIES),
    Mutant("teaching/_choose.py", "progress)[drawn.first]", "progress)", TIES),
    Mutant("teaching/_step.py", "after = lesson.toward(lane.params, update.params)", "after = update.params", LENGTH),
    Mutant("teaching/_step.py", "Lane(after, update.memory, ", "Lane(after, lane.memory, ", OWN),
    Mutant("teaching/_block.py", "Moment(step, numbers.last_step)", "Moment(step + 1, numbers.last_step)"),
    Mutant("teaching/_block.py", "jnp.minimum(CHUNK, end - before.step)", "CHUNK"),
    Mutant("teaching/_block.py", "s / jnp.maximum(end - first, 1)", "s / numbers.every"),
    Mutant(
        "teaching/_block.py",
        "jnp.minimum(carry.step + numbers.every, numbers.last_step)",
        "carry.step + numbers.every",
    ),
    Mutant("teaching/_run.py", "task.beta_decay if self.beta is None else 0.0", "task.beta_decay"),
    Mutant("teaching/_lanes.py", '"exact" if teacher.omniscient', '"imitated" if teacher.omniscient'),
    # the bias, norms, noise, ties, classes in the floor
    Mutant("tasks/_pool.py", "jnp.matmul(x, target.T", "jnp.matmul(x[:, :-1], target[:, :-1].T", LOOP),
    Mutant("tasks/_pool.py", "axis=-1) * examples.x.squared_norms", "axis=-1)"),
    Mutant("tasks/_pool.py", "rng.integers(1, classes, len(labels))", "rng.integers(0, classes, len(labels))"),
    Mutant("tasks/_pool.py", "rows.x, target, noisy, teacher_loss)", "rows.x, target, labels, teacher_loss)"),
    Mutant("tasks/_pool.py", "(labelled > before)", "(labelled >= before)"),
    Mutant("tasks/_pool.py", "jnp.sqrt(start.shape[0] * squared_norm(gap))", "jnp.sqrt(squared_norm(gap))"),
    # γ, sharpness, death
    Mutant("mdp/_planning.py", "reward + planning.discount * values", "planning.discount * (reward + values)"),
    Mutant("mdp/_planning.py", "jnp.exp(k * (action - largest))", "jnp.exp(action - largest)"),
    Mutant("mdp/_planning.py", "1.0 if dynamics.survival < 1 else planning.discount", "planning.discount"),
    Mutant("mdp/_dynamics.py", "float(rows.max()) if", "float(rows.min()) if"),
    Mutant("mdp/_dynamics.py", "bool(np.ptp(rows) < 1e-6)", "True"),
    Mutant("mdp/_dynamics.py", "own_way = 1.0 - death - 3 * slip", "own_way = 1.0 - 3 * slip"),
    # transposed solves, whose reward, whose policy
    Mutant("tasks/_irl_rules.py", "softmax(planning.sharpness * solution.q", "softmax(solution.q"),
    Mutant("tasks/_irl_rules.py", "onward.back(sources))", "onward.ahead(sources))"),
    Mutant("tasks/_irl_rules.py", "target_losses = -examples.log_policy", "target_losses = examples.log_policy"),
    Mutant("tasks/_irl_rules.py", "jnp.mean(0.5 * jnp.sum(differences", "jnp.mean(jnp.sum(differences"),
    Mutant("tasks/_irl_rules.py", "planning, solution.q, world.reward)", "planning, solution.q, reward)"),
    Mutant("tasks/_irl_rules.py", "plan(reward).q, reward)", "plan(start).q, reward)", LINES),
    Mutant("tasks/_irl_rules.py", "jnp.abs(jnp.mean(start - truth.target))", "jnp.abs(jnp.mean(start))", LINES),
    Mutant("tasks/_irl_rules.py", "log_policy[examples.actions, ", "log_policy[0 * examples.actions, ", WALK),
    Mutant("tasks/_irl.py", "teacher_target[order] = target", "teacher_target[:] = target[order]"),
    Mutant("tasks/_irl.py", "planning=Planning(sharpness=220.0)", "planning=Planning(sharpness=50.0)", SHARP),
    Mutant("tasks/_irl.py", "planning=Planning(sharpness=200.0)", "planning=Planning(sharpness=220.0)", SHARP),
    # rows of the test, rotations
    Mutant("tasks/_regression.py", ", slice(points // 2, None)", ", slice(points // 2)"),
    Mutant("tasks/_regression.py", "return x @ turn, np", "return x, np"),
    Mutant("tasks/_gaussian.py", "= points(), points()", "= [points()] * 2"),
    Mutant("tasks/_gaussian.py", "rotated(x, target, rng)", "x, target"),
    # the most steps of a search
    Mutant("equation/_search.py", "while len(path) < MOST_STEPS", "while len(path) <= MOST_STEPS"),
    Mutant("equation/_search.py", "for step in range(MOST_STEPS)", "for step in range(MOST_STEPS + 1)"),
    # the conditions of Theorem 1, the premises of its corollary
    Mutant("theory.py", "volumes[chosen] >= jnp.max(others)", "volumes[chosen] < jnp.inf"),
    Mutant("theory.py", "chosen_is_best & (advantage > 0)", "chosen_is_best", SHARES),
    Mutant("theory.py", "lr**2 * norm_slope + 4 * lr * loss_slope", "lr * norm_slope + 4 * lr * loss_slope"),
    Mutant("theory.py", "jnp.max(jnp.min(apart, axis=1))", "jnp.max(apart)"),
    Mutant("theory.py", "gains > progress + noticed", "gains < progress + noticed"),
)  # fmt: skip


def guards(mutant):
    """The tests that should notice."""
    return mutant.tests or next(tests for file, tests in GUARDS.items() if mutant.file.startswith(file))


def mutated(mutant, text):
    """The source with the snippet replaced; None if it is not there exactly once."""
    return text.replace(mutant.before, mutant.after) if text.count(mutant.before) == 1 else None


def copy_of_tree(folder):
    """Copy what the tests need into a separate folder."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run_tests(tree, tests, timeout=None):
    """Pytest's exit status (None if it hangs) and the last line of its output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=line"]
    command += ["--hypothesis-profile=mutants", *tests]
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tree.parent / "xla"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
    }
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, timeout=timeout, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return None, "hangs"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or done.stdout.splitlines() or done.stderr.splitlines() or [""])[-1]


def try_out(mutant, tree, timeout):
    """The verdict on one mutant, and why."""
    file = tree / SOURCE / mutant.file
    text = file.read_text("utf-8")
    broken = mutated(mutant, text)
    if broken is None:
        return "stale", "the snippet is not there exactly once"
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
    file.write_text(broken, "utf-8")
    try:
        status, said = run_tests(tree, guards(mutant), timeout)
    finally:
        file.write_text(text, "utf-8")
    return {0: "survived", 1: "killed", None: "killed"}.get(status, "not run"), said


def main():
    parser = argparse.ArgumentParser(description="Runs the tests on broken copies of the core.")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--only", metavar="FILE", default="", help="mutants of files whose name contains this")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="copies of the tree to work on at once")
    parser.add_argument("--no-control", action="store_true", help="do not try the tests on the tree as it is")
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="after which a mutant hangs")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.file]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file}: {mutant.before}  →  {mutant.after}")
        return 0

    verdicts = Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.workers) as pool:
        trees = queue.SimpleQueue()
        for worker in range(options.workers):
            trees.put(copy_of_tree(Path(folder) / str(worker)))

        def one(mutant):
            tree, began = trees.get(), time.perf_counter()
            try:
                return (mutant, *try_out(mutant, tree, options.timeout), time.perf_counter() - began)
            finally:
                trees.put(tree)

        if not options.no_control:
            status, said = run_tests(Path(folder) / "0", sorted({test for mutant in chosen for test in guards(mutant)}))
            if status != 0:
                print(f"the tests do not pass on the tree as it is: {said}")
                return 2
        for mutant, verdict, said, seconds in pool.map(one, chosen):
            verdicts[verdict] += 1
            print(f"{verdict:8} {seconds:5.0f} s  {mutant.file}: {mutant.before}  →  {mutant.after}", flush=True)
            print(f"{'':18}{said[:150]}", flush=True)
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("killed", "survived", "stale", "not run")))
    return 0 if verdicts["killed"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
