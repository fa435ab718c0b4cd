"""The completion scripts, in a real shell where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from adapter.__main__ import main
from adapter.commands.help_texts import COMMANDS

COMPLETE = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={last}
_shtab_steadyscale
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_valid_and_has_every_command(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in script] == []
    (tmp_path / "script").write_text(script)
    if program := shutil.which(shell):
        subprocess.run([program, "-n", tmp_path / "script"], check=True)  # noqa: S603 - this script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["steadyscale", "expl"], "explain"),
        (["steadyscale", "check", "--from"], "--from-cluster"),
        (["steadyscale", "autoscale", "--mode", "Dry"], "DryRun"),
        (["steadyscale", "serve", "--config", "/etc/pass"], "/etc/passwd"),
    ],
    ids=["command", "option", "choice", "file"],
)
def test_bash_completes_words(words: list[str], expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    main(["completion", "bash"])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    text = COMPLETE.format(script=script, words=" ".join(words), last=len(words) - 1)

    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)  # noqa: S603, S607

    assert expected in done.stdout.split()
