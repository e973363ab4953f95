#include "common/command_errors.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/byte_size.h"
#include "common/nearest_word.h"
#include "common/status.h"

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

// What was parsed, as far as it went.
class Parsed {
 public:
  explicit Parsed(const CLI::App& app) {
    path_.push_back(&app);
    while (!path_.back()->get_subcommands().empty()) {
      path_.push_back(path_.back()->get_subcommands().front());
    }
  }

  // "plumbline jobs get".
  std::string Words() const {
    return absl::StrJoin(path_, " ", [](std::string* out, const CLI::App* app) {
      absl::StrAppend(out, app->get_name());
    });
  }

  Names Unknown() const { return path_.front()->remaining(/*recurse=*/true); }

  // Of the command: those that may follow it.
  Names Commands() const {
    Names names;
    for (const CLI::App* command : Below(*path_.back())) {
      if (!command->get_name().empty()) names.push_back(command->get_name());
    }
    return names;
  }

  // Every option that may stand there, the command's own first.
  std::vector<const CLI::Option*> Options() const {
    std::vector<const CLI::Option*> options;
    for (auto app = path_.rbegin(); app != path_.rend(); ++app) AddOptions(**app, &options);
    return options;
  }

  const CLI::App& command() const { return *path_.back(); }

  // Groups of options, of which so many must be given.
  static std::vector<const CLI::App*> Groups(const CLI::App& app) {
    std::vector<const CLI::App*> groups;
    for (const CLI::App* group : Below(app)) {
      if (group->get_name().empty()) groups.push_back(group);
    }
    return groups;
  }

 private:
  static std::vector<const CLI::App*> Below(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
  }

  static void AddOptions(const CLI::App& app, std::vector<const CLI::Option*>* options) {
    for (const CLI::Option* option : app.get_options()) options->push_back(option);
    for (const CLI::App* group : Groups(app)) AddOptions(*group, options);
  }

  std::vector<const CLI::App*> path_;
};

std::string DidYouMean(absl::string_view written, const Names& accepted) {
  const std::string nearest =
      NearestWord(written, std::vector<absl::string_view>(accepted.begin(), accepted.end()));
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

// Of a word that nothing takes.
std::string UnknownText(const std::string& word, const Parsed& parsed) {
  if (absl::StartsWith(word, "-")) {
    Names flags;
    for (const CLI::Option* option : parsed.Options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat("there is no flag ", Quoted(flag), DidYouMean(flag, flags));
  }
  const Names commands = parsed.Commands();
  if (commands.empty()) return absl::StrCat(Quoted(word), " is one word too many");
  return absl::StrCat(Quoted(word), " is no command; accepted: ", absl::StrJoin(commands, ", "),
                      DidYouMean(word, commands));
}

// What is not there and must be; empty if nothing is missing.
std::string MissingText(const Parsed& parsed) {
  Names missing;
  for (const CLI::Option* option : parsed.Options()) {
    if (option->get_required() && option->count() == 0) missing.push_back(option->get_name());
  }
  if (!missing.empty()) return absl::StrCat("needs ", absl::StrJoin(missing, ", "));
  for (const CLI::App* group : Parsed::Groups(parsed.command())) {
    if (group->get_require_option_min() == 0 || group->count_all() > 0) continue;
    Names names;
    for (const CLI::Option* option : group->get_options()) {
      if (option != group->get_help_ptr()) names.push_back(option->get_name());
    }
    return absl::StrCat("needs one of ", absl::StrJoin(names, ", "));
  }
  const Names commands = parsed.Commands();
  if (commands.empty()) return "";
  return absl::StrCat("needs a command: ", absl::StrJoin(commands, ", "));
}

// "text or json", of the type of an option that takes these words; empty of others.
std::string ChoicesText(absl::string_view type) {
  const size_t open = type.find('{');
  if (open == absl::string_view::npos || !absl::EndsWith(type, "}")) return "";
  return absl::StrJoin(absl::StrSplit(type.substr(open + 1, type.size() - open - 2), ','), ", ");
}

// Of the value that an option was given; empty where the error is another one.
std::string ValueText(const CLI::ParseError& kind, const Parsed& parsed) {
  const std::string error = kind.what();
  for (const CLI::Option* option : parsed.Options()) {
    const std::string name = option->get_name();
    const std::string given =
        option->results().empty() ? "" : Quoted(absl::StrJoin(option->results(), ","));
    if (error == CLI::ConversionError(name, option->results()).what()) {
      return absl::StrCat(name, ": ", given, " is no value of type ", option->get_type_name());
    }
    if (!absl::StartsWith(error, name + ": ")) continue;
    if (absl::EndsWith(error, " missing")) {
      if (option->get_positional()) return absl::StrCat("needs ", name);
      return absl::StrCat(name, ": needs a value");
    }
    if (const auto* many = dynamic_cast<const CLI::ArgumentMismatch*>(&kind);
        many != nullptr && option->results().size() > 1) {
      return absl::StrCat(name, ": given ", option->results().size(), " times, as ",
                          absl::StrJoin(option->results(), " and "), "; accepted: once");
    }
    if (const std::string choices = ChoicesText(option->get_type_name()); !choices.empty()) {
      return absl::StrCat(name, ": ", given, " is not accepted; accepted: ", choices);
    }
  }
  return "";
}

// Of two options that were both given.
std::string ExclusionText(const std::string& error, const Parsed& parsed) {
  for (const CLI::Option* option : parsed.Options()) {
    for (const CLI::Option* other : option->get_excludes()) {
      if (error == CLI::ExcludesError(option->get_name(), other->get_name()).what()) {
        return absl::StrCat(option->get_name(), ": not together with ", other->get_name());
      }
    }
  }
  return "";
}

std::string ErrorText(const Parsed& parsed, const CLI::ParseError& error) {
  std::string text;
  const bool misses = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // A word that is wrong comes before the one that is missed for it.
  if (misses || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (const Names unknown = parsed.Unknown(); !unknown.empty()) {
      return UnknownText(unknown.front(), parsed);
    }
  }
  if (misses) text = MissingText(parsed);
  if (text.empty()) text = ValueText(error, parsed);
  if (text.empty()) text = ExclusionText(error.what(), parsed);
  return text.empty() ? error.what() : text;
}

// The option of this name, "--wait", that takes a value, or that takes none; null if there is none.
const CLI::Option* FindFlag(const Parsed& parsed, absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "--") || name.empty()) return nullptr;
  for (const CLI::Option* option : parsed.Options()) {
    if (option->check_lname(std::string(name))) return option;
  }
  return nullptr;
}

void CheckValues(const CLI::App& app, const std::vector<absl::string_view>& words) {
  const Parsed parsed(app);
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const CLI::Option* const option = FindFlag(parsed, halves.first);
    if (option == nullptr || option->get_items_expected_max() == 0 || !halves.second.empty())
      continue;
    const bool has_equals = words[i].size() > halves.first.size();
    const bool next_is_flag =
        i + 1 < words.size() &&
        FindFlag(parsed, words[i + 1].substr(0, words[i + 1].find('='))) != nullptr;
    if (has_equals || next_is_flag) {
      throw CLI::ArgumentMismatch::TypedAtLeast(option->get_name(), 1, option->get_type_name());
    }
    ++i;  // Its value.
  }
}

std::string LimitsText(absl::string_view kind, const std::string& least, const std::string& most) {
  if (most.empty())
    return least.empty() ? std::string(kind) : absl::StrCat(kind, ", ", least, " or more");
  return absl::StrCat(kind, " from ", least, " to ", most);
}

}  // namespace

void ParseCommandWords(CLI::App* app, int argc, const char* const* argv) {
  const std::vector<absl::string_view> words(argv + std::min(argc, 1), argv + argc);
  try {
    app->parse(argc, argv);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError&) {
    CheckValues(*app, words);
    throw;
  }
  CheckValues(*app, words);
}

std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error) {
  const Parsed parsed(app);
  const std::string words = parsed.Words();
  return absl::StrCat(words, ": ", ErrorText(parsed, error), "\nSee ", words, " --help");
}

CLI::Validator WholeNumber(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        int64_t number;
        const bool is_number = absl::SimpleAtoi(text, &number);
        if (is_number && number >= least && number <= most) {
          text = absl::StrCat(number);
          return "";
        }
        // Limits that only the number's type has matter to none but their breaker.
        const bool has_least = is_number || (least != INT32_MIN && least != INT64_MIN);
        const bool has_most = is_number || (most != INT32_MAX && most != INT64_MAX);
        return absl::StrCat(Quoted(text), " is not ",
                            LimitsText("a whole number", has_least ? absl::StrCat(least) : "",
                                       has_most ? absl::StrCat(most) : ""));
      },
      "");
}

CLI::Validator Number(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        double number;
        if (absl::SimpleAtod(text, &number) && number >= least && number <= most) return "";
        return absl::StrCat(Quoted(text), " is not ",
                            LimitsText("a number", absl::StrCat(least), absl::StrCat(most)));
      },
      "");
}

CLI::Validator Bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text == "0") return "";
        const absl::StatusOr<int64_t> bytes = ParseByteSize(text, "");
        if (!bytes.ok()) {
          return absl::StrCat(Quoted(text),
                              " is not a number of bytes, e.g. 1073741824, 1GiB or 1GB");
        }
        text = absl::StrCat(*bytes);
        return "";
      },
      "");
}

}  // namespace plumbline
