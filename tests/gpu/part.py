"""A part at full size: phases whose results are kept, so that a part that was stopped goes on where it was."""

import json
import os
import time

from block_replay import Failures
from service import Table

# Within the limit of a part, with time left to end the processes.
BUDGET_SECONDS = 500
# Exit status of a part whose phases did not all fit: it is to be run again.
STATUS_UNFINISHED = 5


class OutOfTime(Exception):
    """The next phase would not end in time."""


class Part:
    """`run` is a list of (phase, seconds that it needs, function); a phase whose result is kept is not run again. Its function
    takes this object and returns the result, a JSON value; it may put files into `folder`."""

    def __init__(self, title, size, programs, folder, device):
        self.title = title
        self.size = size
        self.programs = os.path.abspath(programs)
        self.folder = os.path.abspath(folder)
        self.device = device
        os.makedirs(self.folder, exist_ok=True)
        self.path = os.path.join(self.folder, "state.json")
        self.state = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.state = json.load(file)
        self.begun = time.monotonic()

    def keep(self, phase, result):
        self.state[phase] = result
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.state, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def once(self, name, make):
        """What make() gave when it was first called here, e.g. the name of a job."""
        if name not in self.state:
            self.keep(name, make())
        return self.state[name]

    def run(self, phases, show):
        """The exit status. `show` is called with the table and the failures once all phases have a result."""
        try:
            for phase, needed, function in phases:
                if phase in self.state:
                    continue
                left = BUDGET_SECONDS - (time.monotonic() - self.begun)
                if needed > left:
                    raise OutOfTime(f"{phase}: {needed} s needed, {left:.0f} s left")
                start = time.monotonic()
                result = function(self)
                print(f"  {phase}: {time.monotonic() - start:.1f} s", flush=True)
                self.keep(phase, result)
        except OutOfTime as reason:
            print(f"{self.title}: stopped, to be run again: {reason}")
            return STATUS_UNFINISHED
        failures, table = Failures(), Table(self.title)
        show(self, table, failures)
        table.print()
        print(f"{failures.count} do not hold")
        return 1 if failures.count else 0
