"""The package as users install it: the sdist, a wheel built from it, and that wheel next to packages of equal names."""
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("documents", "retrieval", "strategies", "agents", "experiments")
BACKEND = ("hatchling>=1.27", "hatch-fancy-pypi-readme>=25.1")
pytestmark = pytest.mark.slow

USE = """
import agents, experiments
from ragbed import run, open_run, Assistant, Task, Scripted
import ragbed.agents.graph
print(agents.WHOSE, experiments.WHOSE, Assistant.__module__, ragbed.__file__)
"""


def python(*args, path, cwd):
    done = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, the wheel built from it, and `site`, where the wheel is installed."""
    folder = tmp_path_factory.mktemp("built")
    backend = folder / "backend"
    got = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", backend, *BACKEND],
                         capture_output=True, text=True)
    if got.returncode:
        pytest.skip("no package index; the tools that build the wheel cannot be installed")
    python("-m", "hatchling", "build", "-t", "sdist", "-d", folder, path=[backend], cwd=ROOT)
    sdist = next(folder.glob("ragbed-*.tar.gz"))
    python("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, sdist, path=[backend],
           cwd=folder)
    wheel = next(folder.glob("ragbed-*.whl"))
    python("-m", "pip", "install", "-q", "--no-deps", "--target", folder / "site", wheel, path=[], cwd=folder)
    return folder


def opened(built):
    return zipfile.ZipFile(next(built.glob("ragbed-*.whl")))


def tracked(*folders):
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return {path for path in listed.stdout.split("\0") if (ROOT / path).is_file()}  # without the links to folders


def test_the_sdist_holds_every_source_test_and_docs_page(built):
    with tarfile.open(next(built.glob("ragbed-*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = tracked(*PACKAGES, "tests", "docs", "bench", "Makefile", "constraints.txt", "langgraph.json")
    assert (wanted | tracked("ragbed")) - names == set()


def test_the_wheel_holds_every_file_of_the_packages_and_no_link(built):
    with opened(built) as archive:
        entries = archive.infolist()
    assert {f"ragbed/{path}" for path in tracked(*PACKAGES)} <= {entry.filename for entry in entries}
    assert not [entry for entry in entries if entry.external_attr >> 28 == 0o12]
    assert {entry.filename.partition("/")[0] for entry in entries} == {"ragbed", "ragbed-0.1.0.dist-info"}


def test_its_page_links_files_of_the_repository_alone(built):
    with opened(built) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = message_from_bytes(archive.read(name))
    page = about.get_payload()
    source = dict(one.split(", ") for one in about.get_all("Project-URL"))["Source"]
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", prose)
    for link in map("".join, links):
        path = re.fullmatch(rf"{source}/(?:blob|raw)/main/([^#]+)(?:#.*)?", link)
        assert link.startswith("https://"), link
        assert path is None or (ROOT / path[1]).exists(), link
    assert any(source in "".join(link) for link in links)


def test_it_works_in_a_project_that_has_folders_of_the_same_names(built, tmp_path):
    for name in ("agents", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'theirs'\n")
    site = built / "site"
    said = python("-c", USE, path=[site], cwd=tmp_path)
    assert said.split() == ["theirs", "theirs", "ragbed.agents.assistant", str(site / "ragbed" / "__init__.py")]
    for command, shows in ((["--help"], "compare"), (["list", "benchmarks"], "hotpotqa"),
                           (["new", "strategy", "look_twice"], "look_twice")):
        assert shows in python("-m", "ragbed", *command, path=[site], cwd=tmp_path)


def test_it_works_in_an_environment_with_openai_agents(built, tmp_path):
    """openai-agents installs a package called `agents`. Without it, a stand-in of that name takes its place."""
    agents = os.environ.get("RAGBED_OPENAI_AGENTS")
    if agents:
        others = subprocess.run([agents, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                                capture_output=True, text=True, check=True).stdout.strip()
    else:
        others = tmp_path / "others"
        (others / "agents").mkdir(parents=True)
        (others / "agents" / "__init__.py").write_text("class Agent: pass\n")
    code = ("import agents; agents.Agent; from ragbed import run, open_run, Assistant, Task, Scripted\n"
            "import ragbed.agents.graph; print(agents.__file__)")
    (project := tmp_path / "project").mkdir()
    # The other environment comes last, so that both use one version of what they share, and without this repository,
    # which an editable install puts on the path.
    code = (f"import sys, os\nsys.path[:] = [one for one in sys.path if not os.path.exists(one + '/pyproject.toml')]\n"
            f"sys.path.append({str(others)!r})\n{code}")
    assert str(others) in python("-c", code, path=[built / "site"], cwd=project)
