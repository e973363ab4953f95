// What the command line says of itself, and of words that it does not take.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace plumbline::client {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::variant<CommandLine, HelpText>> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "plumbline");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

std::string ParseError(std::vector<const char*> words) {
  const auto parsed = Parse(std::move(words));
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(CommandHelpTest, HelpIsEverywhere) {
  for (const auto& words : std::vector<std::vector<const char*>>{{"--help"},
                                                                 {"submit", "--help"},
                                                                 {"submit", "block-replay", "-h"},
                                                                 {"jobs", "watch", "--help"},
                                                                 {"faults", "--help"}}) {
    const auto parsed = Parse(words);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(std::get<HelpText>(*parsed).text, HasSubstr("Usage:"));
  }
  EXPECT_THAT(std::get<HelpText>(*Parse({"--help"})).text, HasSubstr("block-replay"));
  EXPECT_THAT(std::get<HelpText>(*Parse({"--version"})).text, HasSubstr("plumbline "));
}

TEST(CommandHelpTest, RefusalsNameTheFlagWhatWasGivenWhatIsAcceptedAndTheHelp) {
  EXPECT_EQ(ParseError({"submit", "block-replay"}),
            "plumbline submit block-replay: needs --checkpoint\n"
            "See plumbline submit block-replay --help");
  EXPECT_EQ(ParseError({"submit", "block-replay", "--chekpoint=x"}),
            "plumbline submit block-replay: there is no flag \"--chekpoint\"; did you mean "
            "--checkpoint?\nSee plumbline submit block-replay --help");
  EXPECT_EQ(ParseError({"submit", "block-replay", "--checkpoint=x", "--block=one"}),
            "plumbline submit block-replay: --block: \"one\" is not a whole number, 0 or more\n"
            "See plumbline submit block-replay --help");
  EXPECT_THAT(ParseError({"report", "7", "--format=xml"}),
              HasSubstr("--format: \"xml\" is not accepted; accepted: text, json\n"));
  EXPECT_THAT(ParseError({"submit", "block-replay", "--checkpoint=x", "--layouts"}),
              HasSubstr("--layouts: needs a value\n"));
  EXPECT_THAT(ParseError({"jobs", "get"}), HasSubstr("plumbline jobs get: needs JOB\n"));
  EXPECT_THAT(ParseError({"jobs", "delete"}), HasSubstr("plumbline jobs delete: needs JOB\n"));
  EXPECT_THAT(ParseError({"jobs", "get", "1", "2"}), HasSubstr("\"2\" is one word too many"));
  EXPECT_THAT(ParseError({"decode", "--output=a.png"}),
              HasSubstr("plumbline decode: needs one of --latents, --kept\n"));
  EXPECT_THAT(ParseError({}), HasSubstr("plumbline: needs a command: submit, jobs, "));
  EXPECT_THAT(ParseError({"job", "list"}),
              HasSubstr("plumbline: \"job\" is no command; accepted: submit, jobs, "));
  EXPECT_THAT(ParseError({"job", "list"}), HasSubstr("did you mean jobs?"));
  EXPECT_THAT(ParseError({"jobs"}), HasSubstr("plumbline jobs: needs a command: list, get, "));
}

// `command` of the program's reference and all that stand below it, each with its words.
void Walk(const nlohmann::json& command, const std::vector<std::string>& words,
          const std::function<void(const nlohmann::json&, std::vector<std::string>)>& visit) {
  visit(command, words);
  for (const nlohmann::json& below : command["commands"]) {
    std::vector<std::string> longer = words;
    longer.push_back(below["name"]);
    Walk(below, longer, visit);
  }
}

nlohmann::json Reference() {
  return nlohmann::json::parse(std::get<HelpText>(*Parse({"--help-json"})).text);
}

absl::StatusOr<std::variant<CommandLine, HelpText>> ParseStrings(
    const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return Parse(pointers);
}

TEST(CommandHelpTest, NoNumberIsRefusedInAParsersWords) {
  int numbers = 0;
  Walk(Reference(), {}, [&](const nlohmann::json& command, std::vector<std::string> words) {
    for (const nlohmann::json& option : command["options"]) {
      const std::string value = option["value"];
      if (value != "INT" && value != "UINT" && value != "FLOAT" && value != "N") continue;
      ++numbers;
      const std::string name = option["names"][0];
      std::vector<std::string> asked = words;
      asked.push_back(name + "=one");
      EXPECT_THAT(std::string(ParseStrings(asked).status().message()),
                  HasSubstr(": " + name + ": \"one\" is not a "));
    }
  });
  EXPECT_GT(numbers, 10);
}

TEST(CommandHelpTest, NumbersAreDecimal) {
  EXPECT_EQ(
      std::get<ListJobs>(std::get<CommandLine>(*Parse({"jobs", "list", "--limit=010"})).command)
          .limit,
      10);
  EXPECT_THAT(ParseError({"jobs", "list", "--limit=0x10"}),
              HasSubstr("--limit: \"0x10\" is not a whole number, 1 or more"));
  EXPECT_THAT(ParseError({"jobs", "list", "--limit=99999999999"}),
              HasSubstr("\"99999999999\" is not a whole number from 1 to 2147483647"));
  EXPECT_THAT(ParseError({"submit", "sweep", "--checkpoint=x", "--priority=101"}),
              HasSubstr("--priority: \"101\" is not a whole number from -100 to 100"));
}

// The words of the examples that a command's help ends with, as a shell would have them.
std::vector<std::vector<std::string>> Examples(const std::string& footer) {
  std::vector<std::vector<std::string>> examples;
  const std::string joined = absl::StrReplaceAll(footer, {{"\\\n", ""}});
  for (const absl::string_view line : absl::StrSplit(joined, '\n')) {
    if (!absl::StartsWith(line, "  plumbline ")) continue;
    examples.emplace_back();
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (word == "&&" || word == "#" || absl::StartsWith(word, ">")) break;
      examples.back().emplace_back(word);
    }
  }
  return examples;
}

TEST(CommandHelpTest, EveryCommandHasExamplesOfItsOwnWhichItTakes) {
  std::set<std::string> footers;
  Walk(Reference(), {}, [&](const nlohmann::json& command, std::vector<std::string> words) {
    const std::string footer = command["footer"];
    if (!words.empty() && !command["commands"].empty()) {
      EXPECT_EQ(footer, "") << absl::StrJoin(words, " ");
      return;
    }
    EXPECT_TRUE(footers.insert(footer).second) << absl::StrJoin(words, " ");
    const std::vector<std::vector<std::string>> examples = Examples(footer);
    EXPECT_FALSE(examples.empty()) << absl::StrJoin(words, " ");
    for (const std::vector<std::string>& example : examples) {
      ASSERT_GT(example.size(), words.size()) << footer;
      EXPECT_TRUE(std::equal(words.begin(), words.end(), example.begin() + 1)) << footer;
      // "plumbline" is what Parse begins with.
      const std::vector<std::string> typed(example.begin() + 1, example.end());
      const auto parsed = ParseStrings(typed);
      EXPECT_TRUE(parsed.ok()) << absl::StrJoin(example, " ") << ": " << parsed.status();
    }
  });
}

}  // namespace
}  // namespace plumbline::client
