"""The Containerfile takes what ./dev package makes, and its images run as nobody's root. --full builds them."""

import fnmatch
import pathlib
import re
import unittest

from tools.package import stage

TEXT = pathlib.Path("deploy/container/Containerfile").read_text()
PACKAGES = ["plumbline_0.1.0+git20240501.0123456789ab_amd64.deb", "plumbline-cuda_0.1.0+git20240501.0123456789ab_amd64.deb"]


def stages():
    """Name, base and instructions of each stage: (word, rest)."""
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", TEXT)).splitlines()
    found = []
    for line in filter(str.strip, lines):
        word, rest = line.strip().split(None, 1)
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            found.append((name, base, []))
        elif found:
            found[-1][2].append((word, rest.strip()))
    return found


class ContainerfileTest(unittest.TestCase):
    def test_every_image_runs_as_a_user_of_its_own(self):
        bases = {name: (base, steps) for name, base, steps in stages()}
        for name, user in [("server", "10001"), ("cli", "10001"), ("worker", "10002"), ("worker-cuda", "10002")]:
            users = [rest for word, rest in bases[name][1] if word == "USER"]
            self.assertEqual(users, [f"{user}:{user}"], name)
            self.assertEqual(bases[name][1][-1][0] in ("USER", "CMD"), True, f"{name}: something is done after its user is set")

    def test_what_is_copied_is_made(self):
        names = [name for name, _, _ in stages()]
        installed = {f"usr/bin/{program}" for program in stage.PROGRAMS}
        for name, _, steps in stages():
            for word, rest in steps:
                if word != "COPY":
                    continue
                words = rest.split()
                if not words[0].startswith("--from="):
                    # Exactly one package of those in dist/.
                    self.assertEqual(len(fnmatch.filter(PACKAGES, words[0])), 1, f"{name}: {rest}")
                    continue
                self.assertIn(words[0][len("--from=") :], names, rest)
                for source in words[1:-1]:
                    if source.startswith("/package/usr/bin/"):
                        self.assertIn(source[len("/package/") :], installed, rest)
        for source in re.findall(r"/package/(usr/bin/\S+)", TEXT):
            self.assertIn(source.rstrip(";"), installed)
        self.assertIn("usr/share/plumbline/web/", pathlib.Path(stage.__file__).read_text())

    def test_programs_are_called_as_they_are(self):
        for program in re.findall(r'ENTRYPOINT \["([^"]+)"\]', TEXT):
            self.assertIn(program, stage.PROGRAMS)

    def test_small_images_begin_with_nothing(self):
        bases = {name: base for name, base, _ in stages()}
        self.assertEqual([bases["server"], bases["cli"]], ["scratch", "scratch"])


if __name__ == "__main__":
    unittest.main()
