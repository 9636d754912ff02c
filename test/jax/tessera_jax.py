"""A plugin of pytest: JAX's tests on the file that TESSERA_JAX_PLUGIN names, or on XLA's CPU without it. Each test's end is a line of
TESSERA_JAX_RESULTS: its name, passed, failed or skipped, and the last line of the error. TESSERA_JAX_SEED changes which cases JAX draws and
their numbers; TESSERA_JAX_AGAIN is a file of such lines, of whose tests only those run that did not pass."""
import json
import os
import types
import zlib

import numpy
import pytest

plugin = os.environ.get("TESSERA_JAX_PLUGIN")
if plugin:
    from jax._src import xla_bridge

    xla_bridge.register_plugin("tessera", library_path=plugin)
    os.environ["JAX_PLATFORMS"] = "tessera,cpu"
    import jax

    jax.config.update("jax_platforms", "tessera,cpu")

seed = int(os.environ.get("TESSERA_JAX_SEED", "0"))
if seed:
    from jax._src import test_util

    def choice(n, m):
        return numpy.random.RandomState(seed).choice(n, size=m, replace=False) if n < 2**31 else numpy.random.RandomState(seed).randint(2**31, size=m)

    test_util._choice = choice
    test_util.zlib = types.SimpleNamespace(adler32=lambda text: zlib.adler32(text) ^ (seed & 0xFFFFFFFF))


def last_of(path):
    """The last outcome of each test that a file of results names."""
    return {name: outcome for name, outcome, _ in map(json.loads, open(path))} if os.path.exists(path) else {}


def pytest_collection_modifyitems(items):
    """Of each N tests one, where TESSERA_JAX_EVERY is N; those that an earlier process has begun are left out."""
    every = int(os.environ.get("TESSERA_JAX_EVERY", "1"))
    begun = last_of(os.environ["TESSERA_JAX_RESULTS"])
    items[:] = [item for item in items[seed % every :: every] if item.nodeid not in begun]
    if "TESSERA_JAX_AGAIN" in os.environ:
        before = last_of(os.environ["TESSERA_JAX_AGAIN"])
        items[:] = [item for item in items if before.get(item.nodeid) in ("failed", "begun")]


def note(*fields):
    with open(os.environ["TESSERA_JAX_RESULTS"], "a") as file:
        file.write(json.dumps(fields) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    note(item.nodeid, "begun", "")


def reason(report):
    text = str(report.longrepr)
    lines = [line[2:].strip() for line in text.splitlines() if line.startswith("E ")]
    for line in lines:
        if "XlaRuntimeError" in line or "JaxRuntimeError" in line:
            return line
    return (lines or text.splitlines() or [""])[0]


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        note(report.nodeid, report.outcome, reason(report) if report.outcome == "failed" else "")
