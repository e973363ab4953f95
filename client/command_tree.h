#ifndef PLUMBLINE_CLIENT_COMMAND_TREE_H_
#define PLUMBLINE_CLIENT_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "client/command_line.h"

namespace plumbline::client {

// The commands of a program, and the data that the one which is parsed makes. One thread.
class CommandTree {
 public:
  // `root` is the program; it must outlive the tree and is parsed by who made it.
  explicit CommandTree(CLI::App* root) : root_(root) {}
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App* root() const { return root_; }

  // A command, whose flags are to be bound to the T that this returns: that is the result where it
  // is parsed. `examples`, of this command alone, end its help.
  template <typename T>
  T* Add(CLI::App* parent, const char* name, const char* description,
         std::initializer_list<const char*> examples, CLI::App** command) {
    *command = parent->add_subcommand(name, description);
    (*command)->fallthrough();
    (*command)->footer(ExamplesText(examples));
    auto flags = std::make_shared<T>();
    T* const raw = flags.get();
    (*command)->callback([this, flags] { make_command_ = [flags] { return Command(*flags); }; });
    return raw;
  }

  // A word before commands, one of which must follow it.
  CLI::App* AddGroup(const char* name, const char* description) {
    return AddGroup(root_, name, description);
  }
  static CLI::App* AddGroup(CLI::App* parent, const char* name, const char* description) {
    CLI::App* group = parent->add_subcommand(name, description);
    group->require_subcommand(1);
    group->fallthrough();
    group->footer("");  // Else that of the program.
    return group;
  }

  // What was parsed; only after it was.
  Command MakeCommand() const { return make_command_(); }

 private:
  static std::string ExamplesText(std::initializer_list<const char*> examples) {
    if (examples.size() == 0) return "";
    std::string text = examples.size() == 1 ? "Example:" : "Examples:";
    for (const char* example : examples) text += std::string("\n  ") + example;
    return text;
  }

  CLI::App* const root_;
  std::function<Command()> make_command_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_COMMAND_TREE_H_
