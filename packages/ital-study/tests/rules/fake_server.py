"""The participant's interface in a few lines, in memory.

What simulated participants are tested against.
"""

import itertools
import json
import random

import httpx

import ital_study as study


class FakeServer:
    """Answers like the study server.

    With ``trouble`` it loses requests and answers now and then.
    """

    def __init__(self, config, *, trouble=0.0, seed=0):
        self.config, self.rules = config, study.StudyRules(config)
        self.rng, self.trouble = random.Random(seed), trouble
        self.people, self.stored, self.requests = {}, [], 0
        self.plan = [("w", config.warm_up_map.name, config.warm_up_learner, config.warm_up_steps)]
        for (i, one), (j, kind) in itertools.product(
            enumerate(config.maps, 1), enumerate(config.learners, 1)
        ):
            self.plan.append((f"{i}-{j}", one.name, kind, config.steps))

    async def __call__(self, request):
        self.requests += 1
        if self.rng.random() < self.trouble:
            raise httpx.ConnectError("the server is down")
        answer = self.answer(request)
        if self.rng.random() < self.trouble:
            raise httpx.ReadError("the answer was lost")
        if self.rng.random() < self.trouble:
            return httpx.Response(503, text="busy")
        return answer

    def answer(self, request):
        body = json.loads(request.content)
        path = request.url.path
        if path == "/api/join":
            assert body["mode"] == "simulated"
            if body["key"] != "sesame":
                return httpx.Response(
                    403, json={"error": "The key is not right.", "code": "forbidden"}
                )
            name = body["ids"]["id"]
            new = {
                "number": len(self.people) + 1,
                "stage": "consent",
                "round": 0,
                "choices": [],
                "teacher": body["teacher"],
            }
            self.people.setdefault(name, new)
            return httpx.Response(
                200,
                json=self.state(name),
                headers={"set-cookie": f"ital_participant={name}; HttpOnly"},
            )
        name = request.headers.get("cookie", "").removeprefix("ital_participant=")
        if name not in self.people:
            return httpx.Response(401, json={"error": "We do not know you.", "code": "unknown"})
        assert request.headers["x-csrf-token"] == f"csrf-{name}"
        person = self.people[name]
        if path == "/api/steps":
            return self.step(name, person, body)
        stage, after = {
            "/api/consent": ("consent", "instructions"),
            "/api/instructions": ("instructions", "check"),
            "/api/check": ("check", "warm_up"),
            "/api/comments": ("comments", "finished"),
        }[path]
        if person["stage"] != stage:
            return self.out_of_order(name)
        if path == "/api/check" and body["answers"] != [one.answer for one in self.config.check]:
            after = "failed_check"
        person["stage"] = after
        return httpx.Response(200, json=self.state(name))

    def step(self, name, person, body):
        done = (person["number"], body["round"], body["step"], body["choice"])
        if done in self.stored:
            return httpx.Response(200, json=self.state(name))
        here = self.plan[person["round"]][0] if person["round"] < len(self.plan) else None
        if (body["round"], body["step"]) != (here, len(person["choices"])):
            return self.out_of_order(name)
        self.stored.append(done)
        person["choices"].append(body["choice"])
        if len(person["choices"]) == self.plan[person["round"]][3]:
            person["round"] += 1
            person["choices"] = []
            person["stage"] = "teach" if person["round"] < len(self.plan) else "comments"
        return httpx.Response(200, json=self.state(name))

    def out_of_order(self, name):
        return httpx.Response(
            409, json={"error": "Elsewhere.", "code": "out_of_order", "state": self.state(name)}
        )

    def state(self, name):
        person = self.people[name]
        state = {
            "stage": person["stage"],
            "csrf": f"csrf-{name}",
            "mode": "simulated",
            "study": {"version": self.config.hash},
        }
        if state["stage"] == "consent":
            state["consent"] = {"version": self.config.consent.version}
        if state["stage"] == "check":
            state["check"] = {"questions": self.config.public()["check"], "tries_left": 2}
        if state["stage"] in ("warm_up", "teach"):
            label, where, learner, _ = self.plan[person["round"]]
            belief = self.rules.replay(person["number"], where, learner, person["choices"])[
                -1
            ].belief
            step = len(person["choices"])
            arrows = self.rules.candidates(person["number"], where)[step]
            state["scene"] = {
                "round": label,
                "step": step,
                "truth": self.rules.truth(where).target.tolist(),
                "belief": self.rules.picture(belief).belief,
                "arrows": [arrow._asdict() for arrow in arrows],
            }
        return state
