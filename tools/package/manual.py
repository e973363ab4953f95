#!/usr/bin/env python3
"""Writes a program's manual page, from what the program says of itself.

    manual.py PROGRAM SECTION VERSION YYYY-MM-DD >PAGE
"""

import re
import sys

import reference

_SEE_ALSO = {"plumbline": 1, "plumbline-server": 8, "plumbline-worker": 8}


def escape(text):
    """Text as roff that prints it as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti")
    return re.sub(r"(?m)^\.", r"\\&.", text)


def paragraph(text):
    return escape(" ".join(text.split()))


def option_heading(option):
    if option.positional:
        return f"\\fI{escape(option.names[0])}\\fR"
    value = "{" + ",".join(option.choices) + "}" if option.choices else option.value
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in sorted(option.names, key=len))
    return f"{names}=\\fI{escape(value)}\\fR" if value else names


def option_lines(options):
    lines = []
    for option in options:
        text = paragraph(option.description)
        if text and not text.endswith("."):
            text += "."
        if option.default and option.default not in option.description:
            text += f" Default: {escape(option.default)}."
        if option.environment:
            text += f" In its place: \\fB{escape(option.environment)}\\fR in the environment."
        if option.required and not option.positional:
            text += " Required."
        lines += [".TP", option_heading(option), text or "\\&"]
    return lines


def synopsis(name, command):
    words = [f"\\fB{escape(word)}\\fR" for word in (name, *command.path)]
    if command.commands:
        words.append("\\fICOMMAND\\fR")
    words += [option_heading(o) for o in command.own_options if o.required and not o.positional]
    words.append("[\\fIOPTIONS\\fR]")
    for option in command.own_options:
        if option.positional:
            words.append(f"\\fI{escape(option.names[0])}\\fR" + (" ..." if option.repeated else ""))
    return " ".join(words)


def footer_lines(footer):
    """Its paragraphs, each under the heading that its first word asks for."""
    lines = []
    notes = []
    for part in filter(None, footer.split("\n\n")):
        if part.startswith("Examples:"):
            body = part.split("\n", 1)[1]
            lines += [".SH EXAMPLES", ".nf", escape(re.sub(r"(?m)^  ", "", body)), ".fi"]
        elif part.startswith("Exit status:"):
            lines += [".SH EXIT STATUS", paragraph(part.split(":", 1)[1]) ]
        else:
            notes += [".PP" if notes else ".SH NOTES", paragraph(part)]
    return notes + lines


def command_footer_lines(footer):
    """The same of a command, without headings."""
    lines = []
    for part in filter(None, footer.split("\n\n")):
        if re.match("Examples?:\n", part):
            examples = re.sub(r"(?m)^  ", "", part.split("\n", 1)[1])
            lines += [".PP", part.split("\n", 1)[0], ".PP", ".nf", escape(examples), ".fi"]
        else:
            lines += [".PP", paragraph(part)]
    return lines


def page(program, section, version, date):
    name = program.name
    lines = [
        f'.TH {name.upper()} {section} "{date}" "Plumbline {version}" "Plumbline"',
        ".SH NAME",
        f"{name} \\- {paragraph(program.description).rstrip('.')}",
        ".SH SYNOPSIS",
        synopsis(name, program),
        ".SH DESCRIPTION",
        paragraph(program.description),
    ]
    leaves = [command for command in program.walk() if command.path and not command.commands]
    if leaves:
        lines.append(".SH COMMANDS")
    for command in leaves:
        lines += [f".SS {' '.join(command.path)}", paragraph(command.description) + ".", ".PP", synopsis(name, command)]
        lines += option_lines(o for o in command.own_options if "--help" not in o.names)
        lines += command_footer_lines(command.footer)
    lines.append(".SH OPTIONS")
    if leaves:
        lines.append("Every command takes these, before or behind its own.")
    lines += option_lines(program.own_options)
    lines += footer_lines(program.footer)
    lines += [".SH SEE ALSO"]
    others = [f"\\fB{escape(other)}\\fR({number})" for other, number in _SEE_ALSO.items() if other != name]
    lines.append(",\n".join(others))
    return "\n".join(lines) + "\n"


def main():
    program, section, version, date = sys.argv[1:]
    sys.stdout.write(page(reference.read(program), section, version, date))


if __name__ == "__main__":
    main()
