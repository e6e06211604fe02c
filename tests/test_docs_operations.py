"""The examples of the operations page: they can be read, and every option in them exists."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from holdfast_app.cli.serve import serve

yaml = pytest.importorskip("yaml", reason="pyyaml comes with the tools of the documentation")

PAGE = (Path(__file__).parents[1] / "docs" / "postgresql.md").read_text()


def example(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


def known_options() -> set[str]:
    assert isinstance(serve, click.Command)
    return {name for parameter in serve.params for name in parameter.opts}


def options_in(command: str) -> set[str]:
    return set(re.findall(r"(--[a-z-]+)", command))


def test_the_example_for_kubernetes_can_be_read_and_its_options_exist() -> None:
    deployment, service = yaml.safe_load_all(example("yaml"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["holdfast", "serve"]
    named = options_in(" ".join(container["command"]))
    assert len(named) > 3 and named <= known_options()
    assert {variable["name"] for variable in container["env"]} == {"POD_IP", "HOLDFAST_STORE", "HOLDFAST_NODE_SECRET"}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]


def test_the_options_of_the_example_for_systemd_exist() -> None:
    unit = example("ini").replace("\\\n", " ")
    (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    named = options_in(command)
    assert len(named) > 3 and named <= known_options()
    assert all(re.fullmatch(r"\[\w+\]|\w+=.+|", line) for line in unit.splitlines())
