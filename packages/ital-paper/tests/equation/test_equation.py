import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ital_paper import equation as eq
from ital_paper.equation import Equation, Term

TERMS = st.builds(
    lambda sign, numerator, denominator, monomial: Term(sign * numerator, denominator, monomial),
    st.sampled_from([1, -1]),
    st.integers(1, 20),
    st.integers(1, 6),
    st.sampled_from(eq.MONOMIALS),
)
SIDES = st.lists(TERMS, max_size=5).map(tuple)
EQUATIONS = st.builds(Equation, SIDES, SIDES)
# Few monomials, so that terms meet.
FEW = st.builds(
    Equation,
    *(
        st.lists(
            st.builds(
                lambda t, m: t._replace(monomial=m), TERMS, st.sampled_from(eq.MONOMIALS[:3])
            ),
            max_size=4,
        ).map(tuple),
    )
    * 2,
)


def polynomial(equation):
    """left − right as {monomial: coefficient}."""
    total = Counter()
    for side, sign in ((equation.left, 1), (equation.right, -1)):
        for term in side:
            total[term.monomial] += sign * Fraction(term.numerator, term.denominator)
    return {monomial: value for monomial, value in total.items() if value}


def same_solutions(a, b):
    p, q = polynomial(a), polynomial(b)
    if set(p) != set(q):
        return False
    return len({p[m] / q[m] for m in p}) <= 1


WORKED = {
    "1/4xyz - 3/2xyz = -14y^3 + 1/5": "-25xyz + 280y^3 - 4 = 0",
    "5x^3y + 8/3z = -14/3z + 6xy^2z + 11/3xz^2 + 6yz^2": (
        "15x^3y - 18xy^2z - 11xz^2 - 18yz^2 + 22z = 0"
    ),
    "-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y": "-25x^2y + 10xy + 6y^3 = 0",
}


@pytest.mark.parametrize(("written", "expected"), WORKED.items())
def test_worked_examples(written, expected):
    assert eq.as_typed(eq.simplify(eq.parse(written))[-1].equation) == expected


def test_second_worked_example_line_by_line():
    steps = eq.simplify(eq.parse(list(WORKED)[1]))
    assert [(step.operation, eq.as_typed(step.equation)) for step in steps] == [
        ("merge", "5x^3y + 22/3z = 6xy^2z + 11/3xz^2 + 6yz^2"),
        ("cancel denominators", "15x^3y + 22z = 18xy^2z + 11xz^2 + 18yz^2"),
        ("move", "15x^3y - 18xy^2z + 22z = 11xz^2 + 18yz^2"),
        ("move", "15x^3y - 18xy^2z - 11xz^2 + 22z = 18yz^2"),
        ("move", "15x^3y - 18xy^2z - 11xz^2 - 18yz^2 + 22z = 0"),
    ]


def test_internal_text():
    equation = eq.parse("1/4xyz − 3/2xyz = −14y³ + 1/5")
    assert eq.text(equation) == "+1/4x^1y^1z^1 -3/2x^1y^1z^1 = -14y^3 +1/5"
    assert eq.text(Equation((), ())) == "0 = 0"
    assert eq.latex(equation) == r"\frac{1}{4}xyz - \frac{3}{2}xyz = -14y^{3} + \frac{1}{5}"


@given(EQUATIONS)
def test_what_is_written_is_read_back(equation):
    assume(len(eq.text(equation)) <= eq.LONGEST)
    assert eq.parse(eq.text(equation)) == equation
    assert eq.parse(eq.as_typed(equation)) == equation


@given(EQUATIONS | FEW)
@settings(max_examples=60)
def test_every_operation_keeps_the_solutions(equation):
    for step in eq.steps(equation):
        assert same_solutions(equation, step.equation), step


@given(EQUATIONS | FEW)
def test_the_simplifier_ends_in_canonical_form_and_says_each_step(equation):
    steps = eq.simplify(equation)
    end = steps[-1].equation if steps else equation
    assert same_solutions(equation, end)
    assert end.right == ()
    monomials = [term.monomial for term in end.left]
    assert monomials == sorted(set(monomials), reverse=True)
    assert all(term.denominator == 1 for term in end.left)
    assert eq.simplify(end) == []
    before = equation
    for step in steps:  # each is one operation of the search, but for scales beyond its reach
        assert step.equation != before
        if step.operation != "scale":
            assert step.equation in {s.equation for s in eq.steps(before)}
        before = step.equation


@given(EQUATIONS | FEW)
def test_a_simplified_equation_has_no_common_factor(equation):
    for start in (
        equation,
        Equation(
            tuple(t._replace(numerator=6 * t.numerator) for t in equation.left), equation.right
        ),
    ):
        end = eq.simplified(start)
        assert not end.left or math.gcd(*(term.numerator for term in end.left)) == 1
        assert eq.trajectory(start)[-1].equation == end


def test_a_factor_that_a_merge_brings_about_is_cancelled_last():
    steps = eq.simplify(eq.parse("x + x = 2"))
    assert [(step.operation, eq.as_typed(step.equation)) for step in steps] == [
        ("merge", "2x = 2"), ("move", "2x - 2 = 0"), ("cancel common factors", "x - 1 = 0"),
    ]  # fmt: skip


@given(EQUATIONS)
@settings(max_examples=40)
def test_sympy_agrees_that_the_end_is_equivalent(equation):
    import sympy

    x, y, z = sympy.symbols("x y z")

    def expression(e):
        side = lambda terms: sum(  # noqa: E731
            (
                sympy.Rational(t.numerator, t.denominator)
                * x ** t.monomial[0]
                * y ** t.monomial[1]
                * z ** t.monomial[2]
                for t in terms
            ),
            sympy.Integer(0),
        )
        return sympy.expand(side(e.left) - side(e.right))

    steps = eq.simplify(equation)
    before, after = expression(equation), expression(steps[-1].equation if steps else equation)
    if before == 0:
        assert after == 0
    else:
        ratio = sympy.cancel(after / before)
        assert ratio.is_number
        assert ratio != 0


def by_brute_force(equation):  # noqa: C901
    """Successors computed from the definitions, on lists, with no library code except the types."""
    left, right = list(equation.left), list(equation.right)
    found = set()

    def add(new_left, new_right):
        found.add(Equation(tuple(new_left), tuple(new_right)))

    def fraction(value):
        return value.numerator, value.denominator

    for side in (0, 1):
        for i, term in enumerate((left, right)[side]):
            variants = [
                Term(term.numerator * k, term.denominator * k, term.monomial)
                for k in range(2, 10)
                if term.denominator > 1
            ]
            reduced = Term(*fraction(Fraction(term.numerator, term.denominator)), term.monomial)
            for variant in [*variants, reduced]:
                sides = [list(left), list(right)]
                sides[side][i] = variant
                add(*sides)
    everything = left + right
    if everything:
        common = np.gcd.reduce([abs(t.numerator) for t in everything])
        add(
            *(
                [Term(t.numerator // int(common), t.denominator, t.monomial) for t in side]
                for side in (left, right)
            )
        )
        multiple = int(np.lcm.reduce([t.denominator for t in everything]))
        scaled = [
            [Term(t.numerator * multiple // t.denominator, 1, t.monomial) for t in side]
            for side in (left, right)
        ]
        add(*scaled)
    for i in range(len(left)):
        rest = left[:i] + left[i + 1 :]
        for j in range(len(left)):
            add([*rest[:j], left[i], *rest[j:]], right)
        add(rest, [-left[i], *right])
    for i in range(len(right)):
        for j in range(len(left) + 1):
            add([*left[:j], -right[i], *left[j:]], right[:i] + right[i + 1 :])
    for i in range(len(everything)):
        for j in range(i + 1, len(everything)):
            a, b = everything[i], everything[j]
            if a.monomial != b.monomial or not (
                a.denominator in (b.denominator, 1) or b.denominator == 1
            ):
                continue
            crosses = i < len(left) <= j
            value = Fraction(a.numerator, a.denominator) + (-1 if crosses else 1) * Fraction(
                b.numerator, b.denominator
            )
            new = [Term(*fraction(value), a.monomial)] if value else []
            cells = [[t] for t in everything]
            cells[i], cells[j] = new, []
            flat = lambda cells: [t for cell in cells for t in cell]  # noqa: E731
            add(flat(cells[: len(left)]), flat(cells[len(left) :]))
    found.discard(equation)
    return {e for e in found if len(eq.text(e)) <= eq.LONGEST}


@given(EQUATIONS | FEW)
@settings(max_examples=60)
def test_successors_are_those_of_brute_force(equation):
    ours = [step.equation for step in eq.successors(equation)]
    assert len(set(ours)) == len(ours)
    assert set(ours) == by_brute_force(equation)


def test_successors_that_are_too_long_are_left_out():
    side = tuple(Term(-20, 3, (2, 1, 1)) for _ in range(5))
    equation = Equation(side, (*side, Term(-20000, 3000, (2, 1, 1))))
    assert len(eq.text(equation)) <= eq.LONGEST
    lengths = {len(eq.text(step.equation)) for step in eq.steps(equation)}
    assert max(lengths) > eq.LONGEST
    assert all(len(eq.text(step.equation)) <= eq.LONGEST for step in eq.successors(equation))


def test_random_equations_and_trajectories_are_as_measured():
    rng = np.random.default_rng(0)
    count = 3000
    lengths, operations, repeated, longest = [], Counter(), 0, 0
    for _ in range(count):
        equation = eq.random_equation(rng)
        states = eq.trajectory(equation)
        lengths.append(len(states))
        operations.update(state.operation for state in states)
        monomials = [term.monomial for term in equation.left + equation.right]
        repeated += len(set(monomials)) < len(monomials)
        longest = max(longest, *(len(eq.text(state.equation)) for state in states))
    assert np.mean(lengths) == pytest.approx(8.26, abs=4 * np.std(lengths) / count**0.5)
    assert np.median(lengths) == 8
    assert np.percentile(lengths, 95) == 13
    assert repeated / count == pytest.approx(0.526, abs=4 * (0.25 / count) ** 0.5)
    measured = {
        "move": 4.98,
        "cancel denominators": 1.0,
        "merge": 0.75,
        "scale": 0.53,
        "cancel common factors": 0.01,
    }
    for operation, mean in measured.items():
        assert operations[operation] / count == pytest.approx(mean, abs=0.1), operation
    assert longest <= eq.LONGEST


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "one '=', not 0"),
        ("x = 1 = 2", "one '=', not 2"),
        ("x + = 2", r"character 5 .*expected a number or one of x, y, z"),
        ("= 2", "this side is empty; write 0"),
        ("2 =", "this side is empty"),
        ("2a = 1", r"character 2 .*only x, y and z are known, not 'a'"),
        ("x y2 = 1", "write a power with"),
        ("1/0x = 1", "a denominator cannot be 0"),
        ("x^5 = 1", "degree of a term must be from 0 to 4"),
        ("x^2y^3 = 1", "degree"),
        ("xx = 1", "x occurs twice"),
        ("0x = 1", "a coefficient cannot be 0"),
        ("2 3 = 1", r"expected \+ or -"),
        ("x + ? = 1", r"character 5"),
        ("+".join(["7x"] * 80) + "= 1", "the full form of the equation has"),
        ("x" * 2000 + "= 1", "too long"),
    ],
)
def test_what_is_no_equation_is_refused_at_the_place(written, message):
    with pytest.raises(ValueError, match=message) as refusal:
        eq.parse(written)
    assert "\n" not in str(refusal.value)
