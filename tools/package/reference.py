"""What a program takes, as its own --help-json says (common/command_reference.h)."""

import json
import os
import re
import subprocess

# Not in manuals and completions: what they are made of.
_HIDDEN = {"--help-json"}


class Option:
    def __init__(self, data):
        self.names = data["names"]
        self.description = data["description"]
        self.value = data["value"]
        self.choices = data["choices"]
        self.environment = data["environment"]
        self.default = data["default"]
        self.positional = data["positional"]
        self.required = data["required"]
        self.repeated = data["repeated"]

    @property
    def takes_value(self):
        return not self.positional and self.value != ""

    @property
    def kind(self):
        """What its value is to a shell: 'choice', 'folder', 'file' or ''."""
        if self.choices:
            return "choice"
        if not self.positional and not self.takes_value:
            return ""
        if "DIR" in self.value:
            return "folder"
        if "FILE" in self.value:
            return "file"
        first = re.search(r"\b(folder)\b|\b(files?|PEM|safetensors|shared object)\b", self.description, re.IGNORECASE)
        if not first:
            return ""
        return "folder" if first[1] else "file"


class Command:
    """A program, or a command of it. `path`: its words after the program's name."""

    def __init__(self, data, path=(), above=()):
        self.path = tuple(path)
        self.description = data["description"]
        self.footer = data["footer"]
        self.name = data["name"]
        self.own_options = [o for o in map(Option, data["options"]) if not _HIDDEN & set(o.names)]
        # Those of the commands above count here too; each command has a --help of its own.
        self.options = self.own_options + [o for o in above if "--help" not in o.names and "--version" not in o.names]
        self.commands = [Command(c, self.path + (c["name"],), self.options) for c in data["commands"]]

    def walk(self):
        """Itself, then every command below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def read(program):
    """The reference of the program file `program`, which says the same whoever asks, wherever."""
    ended = subprocess.run(
        [program, "--help-json"], env={"HOME": "~", "PATH": os.defpath}, stdout=subprocess.PIPE, check=True, text=True
    )
    return Command(json.loads(ended.stdout))
