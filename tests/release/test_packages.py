"""Wheel and sdist: their content, reproducible bytes, and one version in all files."""

import os
import re
import shutil
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
import ready

import kdmaps

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Files of a package in addition to the sources.
METADATA = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".gitignore")


def sources():
    paths = (path for path in (ROOT / "src" / "kdmaps").rglob("*") if path.is_file())
    return [path for path in paths if path.suffix not in {".pyc", ".nbi", ".nbc"}]


def build(folder, date):
    """Build both from a copy of the sources in a folder, all files of which have a certain date."""
    pytest.importorskip("hatchling")
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    tree = folder / "tree"
    for source in [*sources(), *(ROOT / name for name in METADATA)]:
        target = tree / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        os.utime(target, (date, date))
    (wheel,) = WheelBuilder(str(tree)).build(directory=str(folder / "dist"))
    (sdist,) = SdistBuilder(str(tree)).build(directory=str(folder / "dist"))
    return Path(wheel), Path(sdist)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("first"), 1.7e9)


def test_two_builds_have_the_same_bytes(built, tmp_path):
    for first, second in zip(built, build(tmp_path / "elsewhere", 1.6e9), strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes()


def test_wheel_holds_only_the_package(built):
    expected = {str(path.relative_to(ROOT / "src")) for path in sources()}
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    described = {name for name in names if name.startswith(f"kdmaps-{kdmaps.__version__}.dist-info/")}
    assert names - described == expected
    assert {name.split("/", 1)[1] for name in described} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    code = {".py", ".pyi", ".css", ".html", ".js"}
    assert {Path(name).suffix for name in expected - {"kdmaps/py.typed"}} == code
    assert not [
        name for name in expected if re.search(r"\btests?\b|experiments|benchmarks|/results/|/data/.*\.(csv|npz)", name)
    ]


def test_sdist_holds_the_sources_of_the_wheel(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert names == {str(path.relative_to(ROOT)) for path in sources()} | set(METADATA) | {"PKG-INFO"}


def test_metadata(built):
    with zipfile.ZipFile(built[0]) as wheel:
        metadata = message_from_string(wheel.read(f"kdmaps-{kdmaps.__version__}.dist-info/METADATA").decode())
    assert metadata["Version"] == kdmaps.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    # Dependency groups, for developers, are not published.
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert not {"test", "docs", "lint", "compare", "rivals"} & set(metadata.get_all("Provides-Extra"))
    assert len(metadata.get_all("Project-URL")) == len(PROJECT["urls"])


def test_all_files_name_the_same_version():
    assert list(ready.disagreements(ROOT)) == []


@pytest.fixture
def released(tmp_path):
    """The files that a maintainer changes, with the values of release 1.2.3."""
    edits = {
        "src/kdmaps/__init__.py": (r'(?<=^__version__ = ").+(?="$)', "1.2.3"),
        "CITATION.cff": (r"^version: .+\n(date-released: .+\n)?", "version: 1.2.3\ndate-released: 2030-01-02\n"),
        "recipe/recipe.yaml": (r'(?<=^  version: ").+(?="$)', "1.2.3"),
        "CHANGELOG.md": (r"^## .+$", "## 1.2.3 – 2030-01-02"),
    }
    for name in {*edits, *ready.ADDRESSED}:
        text = (ROOT / name).read_text().replace(ready.PLACEHOLDER, "kdmaps.test")
        if name in edits:
            text = re.sub(*edits[name], text, count=1, flags=re.MULTILINE)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_release_is_ready(released):
    assert list(ready.missing(released, "v1.2.3")) == []
    (other,) = ready.missing(released, "v1.2.4")
    assert "1.2.3" in other
    assert "v1.2.4" in other


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "CITATION.cff: "),
        ("CITATION.cff", "date-released: 2030-01-02\n", "", "CITATION.cff: "),
        ("CHANGELOG.md", "2030-01-02", "2030-01-03", "CHANGELOG.md: "),
        ("recipe/recipe.yaml", '"1.2.3"', '"1.2.2"', "recipe/recipe.yaml: "),
        ("pyproject.toml", "kdmaps.test", ready.PLACEHOLDER, "pyproject.toml:"),
    ],
)
def test_missing_values_are_named(released, name, old, new, said):
    text = (released / name).read_text()
    (released / name).write_text(text.replace(old, new, 1))
    first, *others = ready.missing(released, "v1.2.3")
    assert first.startswith(said)
    # Without the date, the heading is wrong, too.
    assert len(others) == ("date-released" in old)


def test_recipe_has_the_requirements_of_pyproject():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["plot"], *extras["report"], *extras["cli"]]
    wanted = {re.sub("^matplotlib(?=>)", "matplotlib-base", each) for each in wanted if not each.startswith("kdmaps[")}
    python, *asked = recipe["requirements"]["run"]
    assert {each.replace(" ", "") for each in asked} == wanted
    assert python.startswith("python >=")
    assert ">=" + recipe["context"]["python_min"] == PROJECT["requires-python"]
    (program,) = recipe["build"]["python"]["entry_points"]
    assert program.split(" = ") == ["kdmaps", PROJECT["scripts"]["kdmaps"]]


def test_recipe_renders():
    rattler = pytest.importorskip("rattler_build")
    (variant,) = rattler.Stage0Recipe.from_file(ROOT / "recipe" / "recipe.yaml").render()
    package = variant.recipe.package
    assert (package.name, str(package.version)) == ("kdmaps", kdmaps.__version__)


def test_all_files_have_one_address():
    """Placeholders or not: every file leads to the same place."""
    home = PROJECT["urls"]["Homepage"]
    host = re.match(r"https://[^/]+/", home)[0]
    for name in ready.ADDRESSED:
        found = re.findall(rf"{re.escape(host)}[\w./-]*", (ROOT / name).read_text())
        assert found, name
        assert all(address.startswith(home) for address in found), name
