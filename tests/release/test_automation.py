"""Files for other services: valid by their schemas, and calling the targets of the Makefile."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
    "vendor.github-issue-config": [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-issue-forms": FORMS,
    "vendor.readthedocs": [ROOT / ".readthedocs.yaml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split())


def validate(schema, *paths):
    check = pytest.importorskip("check_jsonschema")
    from click.testing import CliRunner

    return CliRunner().invoke(check.main, ["--builtin-schema", schema, *map(str, paths)])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schemas(schema):
    assert SCHEMAS[schema]
    done = validate(schema, *SCHEMAS[schema])
    assert done.exit_code == 0, done.output


def test_a_schema_can_be_violated(tmp_path):
    wrong = tmp_path / "test.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs_on:"))
    assert validate("vendor.github-workflows", wrong).exit_code == 1


def test_workflows_are_safe():
    """Zizmor finds nothing: no stored secrets, no commands from untrusted input, few permissions."""
    zizmor = shutil.which("zizmor", path=Path(sys.executable).parent)
    if zizmor is None:
        raise ModuleNotFoundError("the dependency group test is not installed", name="zizmor")
    done = subprocess.run([zizmor, "--offline", "--no-progress", ROOT / ".github"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def commands(path):
    """Return the lines that a workflow, or another file in YAML, runs."""
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load(path.read_text())
    if "jobs" not in document:
        return document["build"]["commands"]
    steps = [step for job in document["jobs"].values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".readthedocs.yaml"], ids=lambda path: path.stem)
def test_automation_calls_the_targets_of_the_makefile(path):
    """Developers can run the same commands."""
    yaml = pytest.importorskip("yaml")
    for line in commands(path):
        assert line.startswith(("make ", ".ci/run", "gh release ", "mkdir ", "cp ")), line
        for target in re.findall(r"make ([\w-]+)", line):
            assert target in TARGETS, line
    matrix = yaml.safe_load(path.read_text()).get("jobs", {}).get("test", {}).get("strategy", {}).get("matrix", {})
    assert {row["target"] for row in matrix.get("include", [])} | set(matrix.get("target", [])) <= TARGETS


def test_every_supported_python_is_tried():
    yaml = pytest.importorskip("yaml")
    tried = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    stated = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert tried["python"] == stated


def test_ci_runs_test_and_docs():
    assert {"test", "docs"} <= set(re.findall(r"make ([\w-]+)", (ROOT / ".ci" / "run").read_text())) <= TARGETS
