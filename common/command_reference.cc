#include "common/command_reference.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> Names(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(/*positional=*/true)};
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back(absl::StrCat("--", name));
  for (const std::string& name : option.get_snames()) names.push_back(absl::StrCat("-", name));
  return names;
}

// Of a value's type: "TEXT", or with a check "TEXT:{text,json}" or "INT:POSITIVE".
std::vector<std::string> Choices(absl::string_view type) {
  const size_t open = type.find('{');
  if (open == absl::string_view::npos || !absl::EndsWith(type, "}")) return {};
  return absl::StrSplit(type.substr(open + 1, type.size() - open - 2), ',');
}

std::string ValueName(const CLI::Option& option) {
  if (option.get_type_size_max() == 0) return "";
  if (!option.get_option_text().empty()) return option.get_option_text();
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

Json OptionReference(const CLI::Option& option) {
  return {{"names", Names(option)},
          {"description", option.get_description()},
          {"value", ValueName(option)},
          {"choices", Choices(option.get_type_name())},
          {"environment", option.get_envname()},
          {"default", option.get_default_str()},
          {"positional", option.get_positional()},
          {"required", option.get_required()},
          {"repeated", option.get_items_expected_max() > 1}};
}

// Those of `app` and of its groups, which are commands without a name to CLI11.
void AddOptions(const CLI::App& app, Json* options) {
  for (const CLI::Option* option : app.get_options()) options->push_back(OptionReference(*option));
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (group->get_name().empty()) AddOptions(*group, options);
  }
}

Json Reference(const CLI::App& app) {
  Json reference = {{"name", app.get_name()},
                    {"description", app.get_description()},
                    {"footer", app.get_footer()},
                    {"options", Json::array()},
                    {"commands", Json::array()}};
  AddOptions(app, &reference["options"]);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_name().empty()) reference["commands"].push_back(Reference(*command));
  }
  return reference;
}

}  // namespace

std::string CommandReference(const CLI::App& app) { return Reference(app).dump(1); }

void AddReferenceFlag(CLI::App* app) {
  app->add_flag_callback(
         "--help-json", [app] { throw CLI::CallForVersion(CommandReference(*app), 0); },
         "Print all commands and options as JSON and exit")
      ->configurable(false);
}

}  // namespace plumbline
