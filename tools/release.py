"""Prepares a release, except for the upload: python tools/release.py [VERSION].

It checks that the tree is clean, that the three packages agree on the version and that the
changelog has it, builds their wheels and sdists, checks them, installs the wheels into a fresh
environment and tries them.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "packages" / name for name in ("ital", "ital-study", "ital-paper")]
VERSION_FILE = PACKAGES[0] / "src/ital/_version.py"
CHANGELOG = ROOT / "CHANGELOG.md"


def run(*command: str | Path) -> None:
    """Run a command in the checkout; stop at its first failure."""
    print("+", *command, flush=True)
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def versions() -> dict[Path, set[str]]:
    """Return the versions that each file says: of its package, and of those of ours that the
    package needs.
    """
    said = {VERSION_FILE: set(re.findall(r'__version__ = "(.+)"', VERSION_FILE.read_text()))}
    for package in PACKAGES[1:]:
        project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
        needed = [
            requirement for requirement in project["dependencies"] if requirement.startswith("ital")
        ]
        said[package / "pyproject.toml"] = {
            project["version"],
            *(one.partition("==")[2] for one in needed),
        }
    return said


def fault(version: str) -> str:
    """Return the problems that prevent this release; empty if it can be built."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        return f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1"
    other = [str(file.relative_to(ROOT)) for file, said in versions().items() if said != {version}]
    if other:
        return f"not all versions in {', '.join(other)} are {version}: write it there, and commit"
    if not re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", CHANGELOG.read_text(), re.MULTILINE
    ):
        return (
            f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)': "
            "write what has changed, and the date"
        )
    if subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True
    ).stdout:
        return "the working tree is not clean: commit first"
    return ""


def main(version: str) -> int:
    """Build, check and try the release; return 2 if something prevents it."""
    if reason := fault(version):
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "dist"
        for package in PACKAGES:
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", built, package)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
        venv.create(Path(folder) / "env", with_pip=True)
        python = Path(folder) / "env/bin/python"
        run(
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "-c",
            "constraints.txt",
            *sorted(built.glob("*.whl")),
        )
        run(python, "tools/smoke.py")
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for file in built.iterdir():
            shutil.copy(file, dist)
    print(
        f"dist/ holds {version}. To publish: git tag v{version}, push the tag, twine upload "
        f"dist/*{version}*"
    )
    return 0


if __name__ == "__main__":
    (current,) = versions()[VERSION_FILE]
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else current))
