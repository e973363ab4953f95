"""docs/generations.md, word for word: its commands, run in an empty folder with what examples/generation holds."""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from tests.e2e import harness

GUIDE = pathlib.Path("docs/generations.md")
EXAMPLE = pathlib.Path("examples/generation")


class GenerationGuideTest(harness.Case):
    def test_every_command_works_in_its_order(self):
        names = {}
        blocks = re.findall(r"(?m)(?:^    .*\n)+", GUIDE.read_text())
        copy, *rest = [block.replace("\\\n", "") for block in blocks]
        _, *files, here = shlex.split(copy)
        self.assertEqual(here, ".")
        for file in files:
            shutil.copy(file.replace(".../", ""), self.folder)
        lines = [line for block in rest for line in block.splitlines()]
        self.assertEqual(len(lines), 6, lines)
        for line in lines:
            for name, job in names.items():
                line = re.sub(rf"\b{name}\b", job, line)
            program, *words = shlex.split(line)
            self.assertEqual(program, "plumbline")
            ended = self.run_client(*words)
            self.assertEqual(ended.status, 0, ended)
            if words[0] == "submit":
                kind = "GATE" if words[1] == "full-model" else "PROVIDER"
                names.setdefault(kind, re.search(r"jobs/\w+", ended.out.splitlines()[0])[0])
            if "--against" in line:
                for seed in ("42", "43"):
                    self.assertIn(f"PASSED: seed {seed}: PSNR", ended.out)
                self.assertNotIn("not citable", ended.out)

    def test_the_conditioning_is_what_its_script_writes(self):
        made = self.path("made.safetensors")
        subprocess.run([sys.executable, EXAMPLE / "write_conditioning.py", made], check=True)
        shipped = (EXAMPLE / "conditioning.safetensors").read_bytes()
        self.assertEqual(pathlib.Path(made).read_bytes(), shipped)


if __name__ == "__main__":
    unittest.main()
