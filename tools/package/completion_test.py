"""Completions as a person at a terminal gets them, from the shells themselves; and manuals, as man prints them."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from tests.e2e import case_results

TOOLS = pathlib.Path("tools/package").resolve()
PROGRAMS = [
    pathlib.Path(path).resolve()
    for path in ["client/plumbline", "server/plumbline-server", "worker/plumbline-worker"]
]
DEADLINE_S = 60


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True).stdout


class Terminal:
    """A shell that somebody types at."""

    def __init__(self, folder, *words):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": folder, "PS1": "> "})
        self.text = ""

    def send(self, text):
        os.write(self.file, text.encode())

    def wait_for(self, pattern):
        """The match of `pattern` in what has been printed since the last one."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            match = re.search(pattern, self.text, re.DOTALL)
            if match:
                self.text = self.text[match.end() :]
                return match
            if not select.select([self.file], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            self.text += os.read(self.file, 65536).decode(errors="replace")

    def line_after(self, typed):
        """The command line that `typed`, with tabs in it, becomes: the shell is asked to print its words."""
        self.send("\x15" + typed + " end\x01print_words \x05\r")
        return self.wait_for(r"\r\n<([^\n]*) end>\r\n")[1]

    def close(self):
        os.close(self.file)
        os.waitpid(self.pid, 0)


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        for name in ["report-of-monday.json", "token"]:
            (pathlib.Path(cls.folder) / name).write_text("x")
        (pathlib.Path(cls.folder) / "data-of-server").mkdir()
        for shell, name in [("bash", "plumbline.bash"), ("zsh", "_plumbline")]:
            text = run(sys.executable, TOOLS / "completion.py", shell, *PROGRAMS)
            (pathlib.Path(cls.folder) / name).write_text(text)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def check(self, terminal):
        self.addCleanup(terminal.close)
        terminal.send("print_words() { echo \"<$*>\"; }\r")
        terminal.send("echo rea\"\"dy\r")
        terminal.wait_for("\nready")
        for typed, expected in [
            ("plumbline sub\tblock\t", "plumbline submit block-replay"),
            ("plumbline jobs can\t", "plumbline jobs cancel"),
            ("plumbline jobs watch JOB --for\tjs\t", "plumbline jobs watch JOB --format=json"),
            ("plumbline report JOB --format js\t", "plumbline report JOB --format json"),
            ("plumbline jobs list --ser\thost:1", "plumbline jobs list --server=host:1"),
            ("plumbline --server=host:1 jobs lis\t", "plumbline --server=host:1 jobs list"),
            ("plumbline --server host:1 work\tdr\t", "plumbline --server host:1 workers drain"),
            ("plumbline submit block-replay --report=report-o\t",
             "plumbline submit block-replay --report=report-of-monday.json"),
            ("plumbline submit block-replay --back\t--wai\t", "plumbline submit block-replay --backward --wait"),
            ("plumbline decode --fra\tu\t", "plumbline decode --frames=u8"),
            ("plumbline-server --data-dir=data-o\t", "plumbline-server --data-dir=data-of-server"),
            ("plumbline-server --keep-j\t1h", "plumbline-server --keep-jobs=1h"),
            ("plumbline-worker --no-f\t", "plumbline-worker --no-ffmpeg"),
        ]:
            with self.subTest(typed=typed):
                # Whether a blank follows a word, or a slash a folder, is the shell's taste.
                self.assertEqual(" ".join(terminal.line_after(typed).split()).rstrip("/"), expected)

    def test_bash(self):
        if not shutil.which("bash"):
            self.skipTest("there is no bash")
        terminal = Terminal(self.folder, "bash", "--norc", "--noprofile", "-i")
        terminal.send("bind 'set bell-style none'; source ./plumbline.bash\r")
        self.check(terminal)

    def test_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh")
        terminal = Terminal(self.folder, "zsh", "-f", "-i")
        terminal.send("unsetopt zle_bracketed_paste beep; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D\r")
        terminal.send("bindkey -e; unsetopt prompt_sp\r")
        self.check(terminal)

    def offered(self, line):
        """All that bash offers at the end of `line`."""
        script = (
            'source ./plumbline.bash; COMP_LINE="$1"; COMP_POINT=${#1}; COMP_WORDBREAKS=$\' \\t\\n"\\\'><=;|&(:\'; '
            'set -- $1; "_${1//-/_}"; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ended = subprocess.run(
            ["bash", "-c", script, "bash", line], cwd=self.folder, stdout=subprocess.PIPE, check=True, text=True
        )
        return ended.stdout.split()

    def test_bash_offers_every_command_and_option_of_the_help_texts(self):
        for program in PROGRAMS:
            for path in self.commands_of(program, ()):
                text = run(program, *path, "--help")
                line = " ".join([program.name, *path, ""])
                commands = re.search(r"Subcommands:\n((?:  .*\n)+)", text)
                expected = re.findall(r"(?m)^  (\S+)", commands[1]) if commands else []
                self.assertEqual(self.offered(line), expected, line)
                options = set(re.findall(r"(?m)^ +(?:-\w,)?(--[\w-]+)", text.split("Examples:")[0]))
                offered = {option.rstrip("=") for option in self.offered(line + "--")}
                self.assertGreaterEqual(offered, options - {"--help-json"}, line)

    def commands_of(self, program, path):
        yield path
        found = re.search(r"Subcommands:\n((?:  .*\n)+)", run(program, *path, "--help"))
        for name in re.findall(r"(?m)^  (\S+)", found[1]) if found else []:
            yield from self.commands_of(program, (*path, name))

    def test_bash_offers_an_option_once_unless_it_may_be_repeated(self):
        line = "plumbline submit block-replay --wait --label=a=b --"
        self.assertNotIn("--wait", self.offered(line))
        self.assertIn("--label=", self.offered(line))
        self.assertIn("--backward", self.offered(line))


class ManualTest(unittest.TestCase):
    def test_every_command_and_option_is_in_it_and_man_takes_it(self):
        for program, section in zip(PROGRAMS, [1, 8, 8]):
            with tempfile.TemporaryDirectory() as folder:
                page = pathlib.Path(folder) / f"{program.name}.{section}"
                page.write_text(
                    run(sys.executable, TOOLS / "manual.py", program, str(section), "1.2.3", "2024-05-01")
                )
                if not shutil.which("man"):
                    self.skipTest("there is no man")
                ended = subprocess.run(
                    ["man", "--warnings", "--local-file", page],
                    env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "120", "MAN_KEEP_FORMATTING": ""},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    check=True,
                    text=True,
                )
                self.assertEqual(ended.stderr, "")
                text = re.sub(r".\x08", "", ended.stdout)
                for option in re.findall(r"(?m)^ +(?:-\w,)?(--[\w-]+)", run(program, "--help").split("Examples:")[0]):
                    if option != "--help-json":
                        self.assertIn(option, text)
                self.assertIn("Plumbline 1.2.3", text)
                self.assertIn("2024-05-01", text)

    def test_a_choice_is_spelt_out(self):
        text = run(sys.executable, TOOLS / "manual.py", PROGRAMS[0], "1", "1", "2024-05-01")
        self.assertIn(r"\fB\-\-format\fR=\fI{text,json}\fR", text)


if __name__ == "__main__":
    case_results.main()
