"""The learner for other front ends: the numbers of the study, strict messages, nothing for other
sites.
"""

import contextlib
import copy
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.cli import learner as _cli_learner
from ital_study.cli import serve
from ital_study.robots import learner as _robots_learner
from ital_study.server import create_learner_app
from tests.server.conftest import running
from tests.server.people import (
    LARGEST_BODY,
    tiny,
)
from tests.server.test_interface import explore
from tests.typed import ital

LAB = "https://lab.example.org"


@pytest.fixture(scope="module")
def rules():
    return study.StudyRules(tiny())


@pytest.fixture(scope="module")
def learner():
    with running(create_learner_app(tiny(), [LAB], requests_per_minute=10**6)) as client:
        yield client


def post(client, path, body, **headers):
    answer = client.post(f"/api/learner/{path}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def begin(client, robot="aware", **more):
    return post(client, "start", {"map": tiny().maps[0].name, "robot": robot, "number": 7, **more})


def arrows_of(scene):
    return [study.Arrow(**arrow) for arrow in scene["candidates"]]


@pytest.mark.parametrize("robot", ["naive", "aware", "adaptive"])
def test_the_numbers_are_those_of_the_study(learner, rules, robot):
    name = tiny().maps[0].name
    scene, mind = begin(learner, robot), rules.mind(robot, rules.start(7, name))
    assert scene["signals"] == rules.measures(name, mind.belief) | dict.fromkeys(
        ("change", "best", "volumes", "imitated_volumes")
    )
    for number, choice in enumerate((3, 0, 9)):
        arrows = rules.candidates(7, name)[number]
        assert (scene["belief"], scene["plan"]) == tuple(rules.picture(mind.belief))
        assert arrows_of(scene) == arrows
        sent = {"state": scene["state"], "candidates": scene["candidates"], "choice": choice}
        before, scene = mind, post(learner, "step", json.loads(json.dumps(sent)))
        mind = rules.update(name, robot, mind, arrows, choice)
        signals = scene["signals"]
        assert signals["best"] == rules.best(name, before.belief, arrows)
        assert signals["volumes"] == rules.volumes(name, before.belief, arrows).tolist()
        assert signals["change"] == pytest.approx(np.linalg.norm(mind.belief - before.belief))
        assert {key: signals[key] for key in ("distance", "reward")} == {
            key: rules.measures(name, mind.belief)[key] for key in ("distance", "reward")
        }
    assert (scene["state"]["step"], scene["candidates"]) == (3, None)
    assert scene["belief"] == mind.belief.tolist()


def test_imitated_volumes_put_losses_in_the_place_of_inner_products(learner, rules):
    name, scene = tiny().maps[0].name, begin(learner)
    seen = post(learner, "look", {"state": scene["state"], "candidates": scene["candidates"]})
    assert {**seen, "signals": None} == {**scene, "signals": None}
    w, lr = np.asarray(scene["belief"]), tiny().lr
    target = np.asarray(rules.truth(name).target, float)
    for index, arrow in enumerate(arrows_of(scene)):
        norm, inner, loss, target_loss = by_differences(rules, w, target, arrow)
        assert seen["signals"]["volumes"][index] == pytest.approx(
            -(lr**2) * norm + 2 * lr * inner, rel=2e-2, abs=2e-4
        )
        imitated = -(lr**2) * norm + 2 * lr * (loss - target_loss)
        assert seen["signals"]["imitated_volumes"][index] == pytest.approx(
            imitated, rel=2e-2, abs=2e-4
        )


def by_differences(rules, w, target, arrow):
    """‖g‖², ⟨w − w*, g⟩ and both losses of an arrow, from finite differences of value iteration in
    float64.
    """

    def loss(rewards):
        planning, values = rules.game.planning, np.zeros(len(w))
        for _ in range(60):
            q, k = expected(rewards + planning.discount * values), planning.sharpness
            values = q.max(axis=0) + np.log(np.exp(k * (q - q.max(axis=0))).sum(axis=0)) / k
        here = q[:, arrow.cell] - q[:, arrow.cell].max()
        return np.log(np.exp(here).sum()) - here[arrow.action]

    gradient = np.array(
        [(loss(w + step) - loss(w - step)) / 2e-5 for step in 1e-5 * np.eye(len(w))]
    )
    return gradient @ gradient, (w - target) @ gradient, loss(w), loss(target)


def expected(per_cell):
    """The expectation of a number over the next cell, for up, right, down, left: slip and death by
    hand.
    """
    size, world = tiny().size, tiny().world
    ways = []
    for row, column in ((-1, 0), (0, 1), (1, 0), (0, -1)):
        cells = [
            (r + row, c + column) if 0 <= r + row < size and 0 <= c + column < size else (r, c)
            for r in range(size)
            for c in range(size)
        ]
        ways.append([per_cell[r * size + c] for r, c in cells])
    ways = np.array(ways)
    others = ways.sum(axis=0) - ways
    return (1 - world.death - 3 * world.slip) * ways + world.slip * others


def test_candidates_may_be_the_clients_own(learner, rules):
    name, scene = tiny().maps[0].name, begin(learner)
    own = [study.Arrow(0, 1), study.Arrow(0, 2), study.Arrow(24, 0)]
    after = post(
        learner,
        "step",
        {"state": scene["state"], "candidates": [arrow._asdict() for arrow in own], "choice": 2},
    )
    expected = rules.update(name, "aware", rules.mind("aware", rules.start(7, name)), own, 2)
    assert after["belief"] == expected.belief.tolist()
    assert len(after["signals"]["volumes"]) == 3


@pytest.mark.parametrize(("robot", "count"), [("aware", 12), ("adaptive", 3)])
def test_other_numbers_of_candidates_are_all_seen(rules, robot, count):
    """A study with that many candidates has a program of its own, and gives the same numbers."""
    others, name = study.StudyRules(tiny(candidates=count)), tiny().maps[0].name
    mind = rules.mind(robot, rules.start(7, name))
    expected = others.mind(robot, mind.belief)
    for step, choice in enumerate((2, 0)):
        arrows = others.candidates(7, name)[step]
        volumes = rules.volumes(name, mind.belief, arrows)
        np.testing.assert_allclose(
            volumes, others.volumes(name, expected.belief, arrows), rtol=1e-4, atol=1e-6
        )
        mind = rules.update(name, robot, mind, arrows, choice)
        expected = others.update(name, robot, expected, arrows, choice)
        assert np.linalg.norm(expected.belief - rules.start(7, name)) > 0.005
        np.testing.assert_allclose(mind.belief, expected.belief, rtol=1e-4, atol=1e-5)
        for ours, theirs in zip(mind.memory, expected.memory, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_no_request_has_to_wait_for_a_program(learner):
    """Each number of candidates compiled programs of its own; fifty at once kept everybody waiting
    for minutes.
    """
    scenes = {robot: begin(learner, robot) for robot in ("naive", "aware", "adaptive")}
    cells = [{"cell": cell % 25, "action": cell // 25} for cell in range(32)]
    compiled = []

    def listen(event, seconds, **_):
        if event.endswith("backend_compile_duration"):
            compiled.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for count in (1, 2, 9, 10, 11, 31, 32):
            for scene in scenes.values():
                body = {"state": scene["state"], "candidates": cells[:count]}
                seen = post(learner, "look", body)
                assert (
                    len(seen["signals"]["imitated_volumes"])
                    == len(seen["signals"]["volumes"])
                    == count
                )
                post(learner, "step", body | {"choice": count - 1})
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled == []


def test_it_says_what_can_be_taught_and_draws_a_number_where_none_is_given(learner):
    told = learner.get("/api/learner").json()
    assert [one["name"] for one in told["maps"]] == [one.name for one in tiny().all_maps]
    assert [one["steps"] for one in told["maps"]] == [3, 3, 2]
    assert set(told["robots"]) == {"naive", "aware", "adaptive"}
    assert len(told["maps"][0]["rewards"]) == told["size"] ** 2
    assert (
        begin(learner, number=None)["state"]["number"]
        != begin(learner, number=None)["state"]["number"]
    )


def changed(scene, **state):
    return {"state": scene["state"] | state, "candidates": scene["candidates"], "choice": 0}


WRONG = {
    "version": (
        lambda scene: changed(scene, version=2),
        "The state has version 2, this is version 1: start again.",
    ),
    "configuration": (
        lambda scene: changed(scene, config="x"),
        "The state belongs to another configuration: start",
    ),
    "map": (lambda scene: changed(scene, map="Z"), "has no map 'Z': its maps are"),
    "robot": (
        lambda scene: changed(scene, robot="clever"),
        "Unknown learner 'clever': choose from",
    ),
    "short belief": (
        lambda scene: changed(scene, belief=[0.0]),
        "The belief has 1 numbers, the map has 25 cells.",
    ),
    "memory": (
        lambda scene: changed(scene, memory=[[0.0]]),
        "The memory of a robot 'aware' has parts of",
    ),
    "large belief": (
        lambda scene: changed(scene, belief=[1e4] * 25),
        "The request is not valid: 'state.belief.0'.",
    ),
    "endless belief": (
        lambda scene: changed(scene, belief=[float("inf")] * 25),
        "not valid: 'state.belief.0'",
    ),
    "no number": (
        lambda scene: changed(scene, belief=[float("nan")] * 25),
        "not valid: 'state.belief.0'",
    ),
    "text": (lambda scene: changed(scene, belief=["1"] * 25), "not valid: 'state.belief.0'"),
    "negative step": (lambda scene: changed(scene, step=-1), "not valid: 'state.step'"),
    "more": (lambda scene: changed(scene, more=1), "not valid: 'state.more'"),
    "choice": (
        lambda scene: changed(scene) | {"choice": 10},
        "Choice 10 is not among the 10 arrows.",
    ),
    "no choice": (lambda scene: {**changed(scene), "choice": None}, "not valid: 'choice'"),
    "no arrows": (lambda scene: changed(scene) | {"candidates": []}, "not valid: 'candidates'"),
    "many arrows": (
        lambda scene: changed(scene) | {"candidates": 33 * [{"cell": 0, "action": 0}]},
        "'candidates'",
    ),
    "outside": (
        lambda scene: changed(scene) | {"candidates": [{"cell": 25, "action": 0}]},
        "outside of the map",
    ),
    "direction": (
        lambda scene: changed(scene) | {"candidates": [{"cell": 2, "action": 4}]},
        "candidates.0.action",
    ),
    "twice": (
        lambda scene: changed(scene) | {"candidates": 2 * [{"cell": 0, "action": 0}]},
        "arrows are the same.",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_requests_are_refused_in_one_sentence(learner, what):
    spoil, sentence = WRONG[what]
    content = json.dumps(spoil(copy.deepcopy(begin(learner))))
    answer = learner.post(
        "/api/learner/step", content=content, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize("value", [-1000.0, -1.0, 0.0, 1000.0])
def test_a_memory_that_no_robot_could_have_is_no_error_of_ours(learner, value):
    scene = begin(learner, "adaptive")
    body = changed(scene, memory=[[value] * len(part) for part in scene["state"]["memory"]])
    assert learner.post("/api/learner/step", json=body).status_code in (200, 422)


def test_a_belief_that_grows_too_large_is_refused(learner):
    answer = learner.post(
        "/api/learner/step",
        json=changed(begin(learner), belief=[1000.0 * (-1) ** cell for cell in range(25)]),
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["error"] == "The robot's numbers are too large to plan with: start again."


def test_size_and_rate_are_bounded(learner):
    large = learner.post("/api/learner/step", content=b" " * (LARGEST_BODY + 1))
    assert large.status_code == 413
    with running(create_learner_app(tiny(), requests_per_minute=2)) as client:
        statuses = [client.get("/api/learner").status_code for _ in range(3)]
        refused = client.post("/api/learner/start", json={"map": "A", "robot": "aware"})
    assert statuses == [200, 200, 429]
    assert (
        refused.status_code,
        refused.json()["code"],
        int(refused.headers["Retry-After"]) > 0,
    ) == (
        429,
        "too_many",
        True,
    )


# Who may use it: nobody logs in, so what matters is which site a browser's page comes from.
SITES = {
    "a program": ({}, 200, None),
    "an allowed site": ({"Origin": LAB, "Sec-Fetch-Site": "cross-site"}, 200, LAB),
    "another site": ({"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"}, 403, None),
    "another site, old browser": ({"Origin": "https://evil.test"}, 403, None),
    "a part of the name": ({"Origin": LAB[:-1]}, 403, None),
    "a longer name": ({"Origin": f"{LAB}.evil.test"}, 403, None),
    "a file": ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403, None),
}


@pytest.mark.parametrize("who", SITES)
def test_only_the_sites_that_were_named_may_use_it(learner, who):
    headers, status, allowed = SITES[who]
    scene = begin(learner)
    looked = {key: changed(scene)[key] for key in ("state", "candidates")}
    start = {"map": tiny().maps[0].name, "robot": "naive"}
    for path, body in {"start": start, "look": looked, "step": changed(scene)}.items():
        answer = learner.post(f"/api/learner/{path}", json=body, headers=headers)
        assert answer.status_code == status, path
        assert answer.headers.get("access-control-allow-origin") == allowed
        assert "access-control-allow-credentials" not in answer.headers
        preflight = learner.options(
            f"/api/learner/{path}",
            headers={
                **headers,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
            },
        )
        assert preflight.headers.get("access-control-allow-origin") == allowed
    assert (
        learner.get("/api/learner", headers=headers).headers.get("access-control-allow-origin")
        == allowed
    )


def test_it_has_no_route_of_the_study_and_sets_no_cookie(learner):
    paths = learner.get("/api/openapi.json").json()["paths"]
    assert set(paths) == {
        "/api/learner",
        "/api/learner/start",
        "/api/learner/look",
        "/api/learner/step",
    }
    for path in ("/", "/dashboard", "/play", "/preview", "/api/state", "/api/admin/overview"):
        assert learner.get(path).status_code == 404
    answer = learner.get("/api/learner")
    assert "set-cookie" not in answer.headers
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_program_of_the_documentation_runs(learner, capsys):
    page = (Path(__file__).parents[4] / "docs" / "study" / "frontends.md").read_text(
        encoding="utf-8"
    )
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(block.replace("http://127.0.0.1:8010", str(learner.base_url).rstrip("/")), {})
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_no_answer_is_an_error_of_ours(learner):
    answers = explore(learner, known=False, examples=10)
    assert len({label for label, _ in answers}) == 4
    assert {status for _, status in answers} >= {200, 422}


@pytest.fixture
def started(monkeypatch):
    calls = []

    def run(app, listening, announce, opened=None):
        with contextlib.closing(listening):
            calls.append((app, announce))

    monkeypatch.setattr(serve, "run", run)
    monkeypatch.setattr(serve, "_set_up_jax", lambda: None)
    return calls


def test_the_command_names_its_address(started, capsys):
    assert ital(capsys, "study", "learner", "--port", "0", "--allow-origin", f"{LAB}/")[0] == 0
    app, announce = started[0]
    assert app.title == "ital study learner"
    assert announce.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "origin", ["*", "null", "lab.example.org", "https://lab.example.org/page", "ftp://a", ""]
)
def test_an_origin_is_a_site(origin):
    with pytest.raises(InputError, match=r"--allow-origin .*: expected a site in lower case"):
        _cli_learner.checked_origin(origin)


def test_sites_may_have_ports_and_addresses():
    for origin in ("http://127.0.0.1:8080", "https://[::1]:8080", "https://lab.example.org"):
        assert _cli_learner.checked_origin(origin) == origin


@pytest.fixture(scope="module")
def believing():
    """A study with robots that keep a belief: its rules alone, without a server."""
    return study.StudyRules(tiny(robots=("aware", "ital-posterior")))


def test_a_robot_that_keeps_a_belief_replays_its_history(believing):
    name = tiny().maps[0].name
    mind = believing.first_mind(7, name, "ital-posterior")
    answer = _robots_learner.start(believing, name, "ital-posterior", 7)
    for number, choice in enumerate((3, 0, 9)):
        arrows = believing.candidates(7, name)[number]
        mind = believing.update(name, "ital-posterior", mind, arrows, choice)
        sent = json.loads(json.dumps(answer["state"]))
        answer = _robots_learner.step(believing, sent, arrows, choice)
        assert answer["belief"] == mind.belief.tolist()
    state = answer["state"]
    assert [len(part) for part in state["memory"]] == [30, 30, 3]
    # Rules that have seen nothing of it give the same robot.
    fresh = study.StudyRules(believing.config)
    arrows = believing.candidates(7, name)[0]
    assert _robots_learner.step(fresh, state, arrows, 1) == _robots_learner.step(
        believing, state, arrows, 1
    )


def test_a_history_that_cannot_have_been_is_refused(believing):
    name = tiny().maps[0].name
    state = _robots_learner.start(believing, name, "ital-posterior", 7)["state"]
    arrows = believing.candidates(7, name)[0]
    state = _robots_learner.step(believing, state, arrows, 1)["state"]
    cells, actions, choices = state["memory"]
    for changes, said in (
        ({"memory": [cells, actions]}, "has parts of"),
        ({"step": 2}, "has parts of"),
        ({"memory": [[25.0] * 10, actions, choices]}, "no cells, directions or choices"),
        ({"memory": [cells, actions, [0.5]]}, "no cells, directions or choices"),
        ({"belief": [1.0] * 25}, "not that of a robot that was shown these arrows"),
        ({"robot": "posterior"}, "unknown learner 'posterior': choose from"),
    ):
        with pytest.raises(InputError, match=said):
            _robots_learner.step(believing, state | changes, arrows, 0)
    with pytest.raises(InputError, match="must have 10 of them, not 9"):
        _robots_learner.step(believing, state, arrows[:9], 0)
