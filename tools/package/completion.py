#!/usr/bin/env python3
"""Writes the completions of programs, from what the programs say of themselves.

    completion.py bash|zsh PROGRAM... >FILE
"""

import re
import shlex
import sys

import reference

# Everything but the tables, which are functions that print: _NAME_commands PATH, _NAME_options PATH and
# _NAME_value "PATH OPTION". Words are split at blanks alone, so that --format=js is one word although bash takes it
# for three.
_BASH = r"""
_plumbline_complete() {
  local table="$1" line="${COMP_LINE:0:COMP_POINT}" word option="" path="" used=" " current="" prefix candidate
  local words=()
  read -ra words <<<"$line"
  [[ "$line" != *[[:space:]] ]] && current="${words[-1]}" && unset 'words[-1]'
  for word in "${words[@]:1}"; do
    if [[ -n "$option" ]]; then
      option=""
    elif [[ "$word" == --*=* ]]; then
      used+="${word%%=*} "
    elif [[ "$word" == -* ]]; then
      used+="$word "
      [[ -z "$("_${table}_value" "$path $word")" ]] || option="$word"
    elif [[ " $("_${table}_commands" "$path") " == *" $word "* ]]; then
      path+="${path:+ }$word"
    fi
  done
  prefix=""
  if [[ -n "$option" ]]; then
    :
  elif [[ "$current" == --*=* ]]; then
    option="${current%%=*}"
    prefix="$option="
    current="${current#*=}"
  fi
  COMPREPLY=()
  if [[ -n "$option" ]]; then
    local value
    value="$("_${table}_value" "$path $option")"
    case "$value" in
      "choice "*) mapfile -t COMPREPLY < <(compgen -W "${value#choice }" -- "$current") ;;
      folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    esac
  elif [[ "$current" == -* ]]; then
    for candidate in $(compgen -W "$("_${table}_options" "$path")" -- "$current"); do
      # One that may be given again ends in *.
      if [[ "$candidate" == *'*' ]]; then
        candidate="${candidate%\*}"
      else
        [[ "$used" != *" ${candidate%=} "* ]] || continue
      fi
      COMPREPLY+=("$candidate")
    done
    ((${#COMPREPLY[@]} != 1)) || [[ "${COMPREPLY[0]}" != *= ]] || compopt -o nospace 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$("_${table}_commands" "$path")" -- "$current")
  fi
  # Readline replaces only what stands behind the last of COMP_WORDBREAKS.
  local whole="$prefix$current" breaks="${COMP_WORDBREAKS//[[:space:]]/}" cut=0 i
  for ((i = ${#whole} - 1; i >= 0; i--)); do
    [[ "$breaks" == *"${whole:i:1}"* ]] && cut=$((i + 1)) && break
  done
  for i in "${!COMPREPLY[@]}"; do
    candidate="$prefix${COMPREPLY[i]}"
    COMPREPLY[i]="${candidate:cut}"
  done
}
"""


def identifier(name):
    return name.replace("-", "_")


def bash_table(function, entries):
    """A function that prints what `entries`, a dictionary, has for its argument."""
    lines = [f"{function}() {{", '  case "$1" in']
    lines += [f"    {shlex.quote(key)}) echo {shlex.quote(value)} ;;" for key, value in entries.items()]
    return lines + ["  esac", "}"]


def bash(program):
    table = identifier(program.name)
    commands, options, values = {}, {}, {}
    for command in program.walk():
        path = " ".join(command.path)
        if command.commands:
            commands[path] = " ".join(c.name for c in command.commands)
        names = []
        for option in command.options:
            if option.positional:
                continue
            long = [name for name in option.names if name.startswith("--")]
            end = ("=" if option.takes_value else "") + ("*" if option.repeated else "")
            names += [name + end for name in long]
            if not option.takes_value:
                continue
            kind = "choice " + " ".join(option.choices) if option.choices else option.kind or "text"
            values.update({f"{path} {name}": kind for name in option.names})
        options[path] = " ".join(names)
    lines = bash_table(f"_{table}_commands", commands)
    lines += bash_table(f"_{table}_options", options)
    lines += bash_table(f"_{table}_value", values)
    lines += [f"_{table}() {{ _plumbline_complete {table}; }}"]
    lines += [f"complete -o bashdefault -o default -F _{table} {program.name}"]
    return lines


def zsh_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_text(text):
    """Text within the brackets of a specification."""
    return re.sub(r"([\[\]:\\])", r"\\\1", " ".join(text.split()))


def zsh_action(option):
    if option.choices:
        return "(" + " ".join(option.choices) + ")"
    return {"folder": "_files -/", "file": "_files"}.get(option.kind, "")


def zsh_option(option):
    """Specifications of one option, one for each name."""
    specifications = []
    for name in option.names:
        again = "*" if option.repeated else "(" + " ".join(option.names) + ")"
        value = ""
        if option.takes_value:
            value = f":{zsh_text(option.value)}:{zsh_action(option)}"
        equals = "=" if option.takes_value and name.startswith("--") else ""
        specifications.append(zsh_quote(f"{again}{name}{equals}[{zsh_text(option.description)}]{value}"))
    return specifications


def zsh_command(table, command):
    # Two underscores: _plumbline is the file itself.
    function = "_".join([f"__{table}", *map(identifier, command.path)])
    specifications = []
    for option in command.options:
        if option.positional:
            again = "*" if option.repeated else ""
            specifications.append(zsh_quote(f"{again}:{zsh_text(option.names[0])}:{zsh_action(option)}"))
        else:
            specifications += zsh_option(option)
    lines = [f"{function}() {{"]
    if command.commands:
        specifications += ["'1:command:->command'", "'*::argument:->argument'"]
        lines.append("  local context state state_descr line ret=1")
        lines.append("  typeset -A opt_args")
    lines.append("  _arguments -S \\" if not command.commands else "  _arguments -C -S \\")
    lines += [f"    {each} \\" for each in specifications]
    lines[-1] = lines[-1][:-2]
    if command.commands:
        lines[-1] += " && ret=0"
        lines += ["  case $state in", "    command)", "      local commands=("]
        for each in command.commands:
            lines.append("        " + zsh_quote(each.name + ":" + zsh_text(each.description)))
        lines += ["      )", "      _describe command commands && ret=0", "      ;;", "    argument)"]
        lines += ["      case $line[1] in"]
        for each in command.commands:
            lines.append(f"        {each.name}) {function}_{identifier(each.name)} && ret=0 ;;")
        lines += ["      esac", "      ;;", "  esac", "  return ret"]
    return lines + ["}"]


def main():
    shell, *programs = sys.argv[1:]
    programs = [reference.read(program) for program in programs]
    names = " ".join(program.name for program in programs)
    if shell == "bash":
        lines = [f"# Completions of {names} for bash.", *_BASH.strip("\n").split("\n")]
        for program in programs:
            lines += bash(program)
    elif shell == "zsh":
        lines = [f"#compdef {names}", ""]
        for program in programs:
            for command in program.walk():
                lines += zsh_command(identifier(program.name), command)
        lines += ["case $service in"]
        lines += [f"  {p.name}) __{identifier(p.name)} ;;" for p in programs]
        lines += ["esac"]
    else:
        sys.exit(f"completion.py: '{shell}' is no shell; bash and zsh are")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
