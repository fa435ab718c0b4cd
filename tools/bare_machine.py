"""Run the first steps of a new user on a bare Debian: python3, python3-venv, make and git, nothing else.

    python3 -m tools.bare_machine [--no-test] [--skipped=FILE]

debootstrap makes the Debian, once per machine; it is kept in ~/.cache/steadyscale. A user without privileges clones
the last commit in a copy of it and runs `tools.newcomer`. The copy has its own mounts and processes, which end with
this program. Mirror, proxy, package index and CAs are those of this machine. Needs root and the package debootstrap.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
RELEASE: Final = "bookworm"
PACKAGES: Final = ("python3", "python3-venv", "make", "git")
USER: Final = "newcomer"
REPOSITORY: Final = Path("/srv/steadyscale.git")
SKIPPED: Final = Path(f"/home/{USER}/skipped-tests")
_PIP_OPTIONS: Final = ("index-url", "extra-index-url", "trusted-host", "cert", "proxy", "timeout")
_PIP_OPTION: Final = re.compile(r"[\w:.-]+\.([\w-]+)='(.*)'")
_SKIPPED_FOR_PROGRAM: Final = re.compile(r" not found: (\d+) tests? skipped; ")
_SKIPPED: Final = re.compile(r"\b(\d+) skipped\b.* in [\d.]+s")
_ENTER: Final = 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$@"'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-test", action="store_true", help="run only the demo")
    parser.add_argument("--skipped", type=Path, metavar="FILE", help="write the ids of the skipped tests to a file")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.stderr.write("tools.bare_machine needs root and debootstrap: apt install debootstrap\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that everything is cleaned up
    archive = debian()
    with tempfile.TemporaryDirectory(prefix="steadyscale-bare-machine-") as folder:
        tree = Path(folder)
        _run("tar", "--extract", "--numeric-owner", f"--file={archive}", f"--directory={tree}")
        prepare(tree)
        newcomer = "python3 -m tools.newcomer " + ("--no-test" if options.no_test else f"--skipped={SKIPPED}")
        script = f"git clone --quiet {REPOSITORY} steadyscale && cd steadyscale && exec {newcomer}"
        code, lines = _run_inside(tree, script)
        if options.skipped and not code and not options.no_test:
            shutil.copyfile(f"{tree}{SKIPPED}", options.skipped)
    return code or unexplained_skips(lines)


def debian() -> Path:
    """Return an archive of a bare Debian; make it if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steadyscale" / "bare-machine"
    archive = cache / f"{RELEASE}-{'-'.join(PACKAGES)}.tar"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            tree, partial = Path(folder) / "tree", Path(folder) / "archive"
            options = ("--variant=minbase", f"--include={','.join(PACKAGES)}")
            _run("debootstrap", *options, RELEASE, str(tree), *mirror(), environment=apt_proxy())
            _run("tar", "--create", "--numeric-owner", f"--file={partial}", f"--directory={tree}", ".")
            partial.rename(archive)
    return archive


def mirror() -> list[str]:
    """Return the mirror that this machine's apt uses for the release; empty if there is none."""
    command = ("apt-get", "indextargets", "--format=$(REPO_URI)", f"Codename: {RELEASE}", "Created-By: Packages")
    return _output(*command).split()[:1]


def apt_proxy() -> dict[str, str]:
    proxy = re.search(r"'(.+)'", _output("apt-config", "shell", "proxy", "Acquire::http::Proxy"))
    return {"http_proxy": proxy[1]} if proxy else {}


def prepare(tree: Path) -> None:
    """Add what the installer of Debian asks for: a user, the network, and here the package index and the CAs."""
    _run("chroot", str(tree), "useradd", "--create-home", USER)
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n")
    pip = pip_options()
    lines = [f"{name} = {value}" for name, value in pip.items()]
    (tree / "etc/pip.conf").write_text("\n".join(["[global]", *lines, ""]))
    for file in (
        Path("/etc/resolv.conf"),
        Path("/etc/ssl/certs/ca-certificates.crt"),
        Path(pip.get("cert") or "/none"),
    ):
        if file.is_file():
            copy = tree / file.relative_to("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    _run("git", "clone", "--quiet", "--bare", str(ROOT), f"{tree}{REPOSITORY}")
    _run("chroot", str(tree), "chown", "--recursive", USER, str(REPOSITORY))  # git refuses repositories of other users


def pip_options() -> dict[str, str]:
    """Return the options of this machine's pip that say where packages come from."""
    listed = map(_PIP_OPTION.fullmatch, _output(sys.executable, "-m", "pip", "config", "list").splitlines())
    options = {found[1]: found[2] for found in listed if found and found[1] in _PIP_OPTIONS}
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    return {"proxy": proxy, **options} if proxy else options


def unexplained_skips(lines: Sequence[str]) -> int:
    """Return 1, with a message, if tests were skipped for another reason than a missing program."""
    text = "".join(lines)
    skipped = sum(map(int, _SKIPPED.findall(text)))
    explained = sum(map(int, _SKIPPED_FOR_PROGRAM.findall(text)))
    if skipped == explained:
        return 0
    print(f"{skipped} tests were skipped, but only {explained} of them for missing programs")
    return 1


def _run_inside(tree: Path, script: str) -> tuple[int, list[str]]:
    """Run a script as the user in the tree and print its output; return the exit code and the lines."""
    isolated = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private")
    user = (f"--userspec={USER}:{USER}", str(tree), "env", "--ignore-environment")
    environment = (f"HOME=/home/{USER}", "PATH=/usr/local/bin:/usr/bin:/bin")
    command = (*isolated, "sh", "-c", _ENTER, str(tree), *user, *environment, "sh", "-c", f"cd && {script}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 - fixed
    lines = []
    try:
        for line in process.stdout or ():
            lines.append(line)
            print(line, end="", flush=True)
    except BaseException:
        process.kill()  # and with it the processes in its namespace
        raise
    finally:
        code = process.wait()
    return code, lines


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env={**os.environ, **(environment or {})})  # noqa: S603 - fixed commands


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout  # noqa: S603 - fixed commands


if __name__ == "__main__":
    sys.exit(main())
