"""Load on the study's server: many simulated participants at once, on the same machine.

    python benchmarks/study_load.py --participants 200 --think 2 --minutes 5

Starts ``ital study serve`` on a fresh SQLite file (or on ``--database``, which must be empty),
sends participants through its interface, and prints latencies of a step as the participants saw
them, errors, and the balance of orders.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

import ital_study as study
from ital_study.cli.serve import listen
from ital_study.config import lineup, map_orders
from ital_study.simulation import arms, participants
from ital_study.store import open_store
from ital_study.store.verification import verify


def main():
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--participants", type=int, default=200)
    parser.add_argument(
        "--think", type=float, default=2.0, help="mean of the exponential think time, seconds"
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--ramp", type=float, default=10.0, help="seconds over which participants arrive"
    )
    parser.add_argument("--teacher", default="random", help="machine, random or boltzmann")
    parser.add_argument("--config", default="paper")
    parser.add_argument("--database", default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name:<28} {value:.2f}" if isinstance(value, float) else f"{name:<28} {value}")


def measure(options, folder):
    """One run: start the server, send the participants, stop the server, check the data."""
    url = options.database or str(folder / "study.db")
    config = study.load_config(options.config)
    key = secrets.token_hex(16)
    probe, address = listen("127.0.0.1", 0)
    probe.close()
    environment = {
        **os.environ,
        "ITAL_STUDY_PASSWORD": secrets.token_hex(16),
        "ITAL_STUDY_SIMULATION_KEY": key,
    }
    environment["ITAL_STUDY_FOLDER"] = str(folder)
    command = [
        sys.executable,
        "-m",
        "ital",
        "study",
        "serve",
        "--trial",
        "--config",
        options.config,
    ]
    command += ["--database", url, "--port", address.rpartition(":")[2]]
    server = subprocess.Popen(command, env=environment)
    try:
        wait_for(address)
        teacher = arms.teacher(options.teacher, default=config.beta)
        outcome = asyncio.run(
            participants.take_part(
                address,
                config,
                teacher,
                options.participants,
                key=key,
                think=options.think,
                ramp=options.ramp,
                limit=60 * options.minutes,
            )
        )
        used = Path(f"/proc/{server.pid}/stat").read_text().split()[13:15]
    finally:
        server.terminate()
        server.wait()
    seconds = sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return {
        **outcome.summary(),
        "server_cpu_share": seconds / outcome.seconds,
        "catch_ups": outcome.catch_ups,
        **balance(url, config),
    }


def balance(url, config):
    """Check the balance of orders, and replay all stored steps."""
    with open_store(url) as store:
        report = verify(store)
        with store.reading() as connection:
            from ital_study.store.operations import taken_orders

            in_use = taken_orders(connection, "simulated", config.hash, since=0)
    # Orders of robots, whatever the order of the maps.
    taken = Counter()
    for order, count in in_use.items():
        taken[map_orders.robots_of(order)] += count
    times = Counter(
        {order: taken[order] for order in lineup.orders(len(config.maps), config.learners)}
    ).values()
    firsts = lineup.firsts(taken, len(config.maps), config.learners)
    return {
        "orders_differ_by": max(times) - min(times),
        "firsts_differ_by": max(max(row.values()) - min(row.values()) for row in firsts),
        "stored_steps": report.steps,
        "problems": len(report.problems),
    }


def wait_for(address, most=120.0):
    """Wait until the server answers."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        try:
            httpx.get(f"{address}/api/state")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
