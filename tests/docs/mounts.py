"""Mounted ConfigMaps and Secrets, with the layout and the updates of a kubelet.

The kubelet writes a new directory, moves the link `..data` to it and removes the old one::

    config.yaml -> ..data/config.yaml
    ..data      -> ..2026-11-17.2
    ..2026-11-17.2/config.yaml
"""

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path

_COUNT = itertools.count()


def project(folder: Path, files: Mapping[str, str]) -> None:
    """Make ``files`` the content of a mounted folder, if they are not yet."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "..data").exists() and content(folder) == dict(files):
        return
    old = (folder / "..data").resolve()
    new = folder / f"..2026-11-17.{next(_COUNT)}"
    new.mkdir()
    for name, text in files.items():
        (new / name).write_text(text)
    link = folder / "..data_tmp"
    link.symlink_to(new.name)
    link.replace(folder / "..data")
    visible = {entry.name for entry in folder.iterdir() if not entry.name.startswith("..")}
    for name in files.keys() - visible:
        (folder / name).symlink_to(f"..data/{name}")
    for name in visible - files.keys():
        (folder / name).unlink()
    if old.name.startswith("..2026"):
        shutil.rmtree(old)


def content(folder: Path) -> dict[str, str]:
    """Return the files of a mounted folder."""
    return {file.name: file.read_text() for file in (folder / "..data").iterdir()}
