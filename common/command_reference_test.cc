#include "common/command_reference.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace plumbline {
namespace {

using Json = nlohmann::json;

// The option of `command` that is called `name`.
Json Option(const Json& command, const std::string& name) {
  for (const Json& option : command["options"]) {
    if (option["names"][0] == name) return option;
  }
  ADD_FAILURE() << "there is no " << name << " in " << command.dump(1);
  return {};
}

class CommandReferenceTest : public testing::Test {
 protected:
  CommandReferenceTest() : app_("Describes.", "program") {
    app_.footer("The end.");
    app_.require_subcommand(1);
    app_.add_option("--server", server_, "HOST:PORT")->envname("PROGRAM_SERVER");
    CLI::App* command = app_.add_subcommand("get", "Gets.");
    command->add_option("JOB", job_, "Name of the job")->required();
    command->add_option("--format,-f", format_, "text or json")
        ->check(CLI::IsMember(std::vector<std::string>{"text", "json"}));
    command->add_flag("--wait", wait_, "Waits");
    command->add_option("--label", labels_, "K=V")->option_text("K=V ...");
    command->add_option("--limit", limit_, "At most")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option_group("source")->add_option("--kept", kept_, "In a group");
    AddReferenceFlag(&app_);
  }

  CLI::App app_;
  std::string server_, job_, format_, kept_;
  std::vector<std::string> labels_;
  int limit_ = 50;
  bool wait_ = false;
};

TEST_F(CommandReferenceTest, SaysEverythingThatTheProgramTakes) {
  const Json program = Json::parse(CommandReference(app_));
  EXPECT_EQ(program["name"], "program");
  EXPECT_EQ(program["description"], "Describes.");
  EXPECT_EQ(program["footer"], "The end.");
  EXPECT_EQ(Option(program, "--server")["environment"], "PROGRAM_SERVER");
  EXPECT_EQ(Option(program, "--server")["value"], "TEXT");
  EXPECT_EQ(Option(program, "--help-json")["value"], "");

  ASSERT_EQ(program["commands"].size(), 1);
  const Json command = program["commands"][0];
  EXPECT_EQ(command["name"], "get");
  const Json job = Option(command, "JOB");
  EXPECT_TRUE(job["positional"]);
  EXPECT_TRUE(job["required"]);
  const Json format = Option(command, "--format");
  EXPECT_EQ(format["names"], Json({"--format", "-f"}));
  EXPECT_EQ(format["choices"], Json({"text", "json"}));
  EXPECT_FALSE(format["positional"]);
  EXPECT_FALSE(format["required"]);
  EXPECT_FALSE(format["repeated"]);
  EXPECT_EQ(Option(command, "--wait")["value"], "");
  EXPECT_TRUE(Option(command, "--label")["repeated"]);
  EXPECT_EQ(Option(command, "--label")["value"], "K=V ...");
  EXPECT_EQ(Option(command, "--limit")["value"], "INT");
  EXPECT_EQ(Option(command, "--limit")["default"], "50");
  EXPECT_EQ(Option(command, "--limit")["choices"], Json::array());
  EXPECT_EQ(Option(command, "--kept")["description"], "In a group");
}

TEST_F(CommandReferenceTest, FlagEndsParsingWithIt) {
  const char* const arguments[] = {"program", "--help-json"};
  try {
    app_.parse(2, arguments);
    FAIL() << "parsing went on";
  } catch (const CLI::CallForVersion& call) {
    EXPECT_EQ(call.what(), CommandReference(app_));
    EXPECT_EQ(call.get_exit_code(), 0);
  }
}

}  // namespace
}  // namespace plumbline
