"""A plugin of pytest: JAX's tests on the file that TESSERA_JAX_PLUGIN names, or on XLA's CPU without it. Each test's end is a line of
TESSERA_JAX_RESULTS: its name, passed, failed or skipped, and the last line of the error."""
import json
import os

import pytest

plugin = os.environ.get("TESSERA_JAX_PLUGIN")
if plugin:
    from jax._src import xla_bridge

    xla_bridge.register_plugin("tessera", library_path=plugin)
    os.environ["JAX_PLATFORMS"] = "tessera,cpu"
    import jax

    jax.config.update("jax_platforms", "tessera,cpu")


def pytest_collection_modifyitems(items):
    """Of each N tests the first, where TESSERA_JAX_EVERY is N; those that an earlier process has begun are left out."""
    every = int(os.environ.get("TESSERA_JAX_EVERY", "1"))
    path = os.environ["TESSERA_JAX_RESULTS"]
    begun = set()
    if os.path.exists(path):
        begun = {json.loads(line)[0] for line in open(path)}
    items[:] = [item for item in items[::every] if item.nodeid not in begun]


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
