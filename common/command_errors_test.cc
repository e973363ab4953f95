#include "common/command_errors.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace plumbline {
namespace {

class CommandErrorsTest : public testing::Test {
 protected:
  CommandErrorsTest() : app_("", "program") {
    app_.add_option("--server", server_)->required();
    app_.add_option("--threads", threads_)->transform(WholeNumber(0));
    app_.add_option("--offset", offset_)->transform(WholeNumber(INT64_MIN, INT64_MAX));
    app_.add_option("--status", status_)->transform(WholeNumber(0, 255));
    app_.add_option("--grace", grace_)->transform(Number(0, 86400));
    app_.add_option("--quota", quota_)->transform(Bytes());
    app_.add_option("--unchecked", unchecked_);
    app_.add_option("--name", name_);
    app_.add_flag("--wait", wait_);
  }

  // The first line of what is said; empty where all is accepted.
  std::string Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "--server=x");
    return ParseAll(std::move(words));
  }
  std::string ParseAll(std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    try {
      ParseCommandWords(&app_, static_cast<int>(pointers.size()), pointers.data());
    } catch (const CLI::ParseError& error) {
      const std::string text = ParseErrorText(app_, error);
      const size_t end = text.find('\n');
      EXPECT_EQ(text.substr(end), "\nSee program --help");
      return text.substr(0, end);
    }
    return "";
  }

  CLI::App app_;
  std::string server_, name_;
  bool wait_ = false;
  int threads_ = 0, status_ = 0, unchecked_ = 0;
  int64_t offset_ = 0, quota_ = 0;
  double grace_ = 0;
};

TEST_F(CommandErrorsTest, ValuesAreToldByWhatTheyMayBe) {
  EXPECT_EQ(Parse({"--threads=x"}), "program: --threads: \"x\" is not a whole number, 0 or more");
  EXPECT_EQ(Parse({"--threads=-1"}),
            "program: --threads: \"-1\" is not a whole number from 0 to 2147483647");
  EXPECT_EQ(Parse({"--threads="}), "program: --threads: needs a value");
  EXPECT_EQ(Parse({"--threads=1", "--threads=2"}),
            "program: --threads: given 2 times, as 1 and 2; accepted: once");
  EXPECT_EQ(Parse({"--offset=1.5"}), "program: --offset: \"1.5\" is not a whole number");
  EXPECT_EQ(Parse({"--status=256"}),
            "program: --status: \"256\" is not a whole number from 0 to 255");
  for (const char* wrong : {"x", "nan", "-1", "inf"}) {
    EXPECT_EQ(Parse({std::string("--grace=") + wrong}),
              std::string("program: --grace: \"") + wrong + "\" is not a number from 0 to 86400");
  }
  for (const char* wrong : {"x", "-1", "1XB", "9223372036854775808", "99999999999TiB"}) {
    EXPECT_EQ(Parse({std::string("--quota=") + wrong}),
              std::string("program: --quota: \"") + wrong +
                  "\" is not a number of bytes, e.g. 1073741824, 1GiB or 1GB");
  }
  EXPECT_EQ(Parse({"--unchecked=x"}), "program: --unchecked: \"x\" is no value of type INT");
}

TEST_F(CommandErrorsTest, ValuesThatMayBeArrive) {
  EXPECT_EQ(Parse({"--threads=010", "--grace=0.5", "--quota=2KiB", "--status=255"}), "");
  EXPECT_EQ(threads_, 10);
  EXPECT_EQ(grace_, 0.5);
  EXPECT_EQ(quota_, 2048);
  EXPECT_EQ(status_, 255);
  EXPECT_EQ(Parse({"--quota=2GB"}), "");
  EXPECT_EQ(quota_, 2'000'000'000);
  EXPECT_EQ(Parse({"--quota=0"}), "");
  EXPECT_EQ(quota_, 0);
}

TEST_F(CommandErrorsTest, WordsThatNothingTakesComeBeforeWhatIsMissing) {
  EXPECT_EQ(ParseAll({}), "program: needs --server");
  EXPECT_EQ(ParseAll({"--sever=x"}),
            "program: there is no flag \"--sever\"; did you mean --server?");
  EXPECT_EQ(Parse({"--nothing-like-it"}), "program: there is no flag \"--nothing-like-it\"");
  EXPECT_EQ(Parse({"word"}), "program: \"word\" is one word too many");
  EXPECT_EQ(Parse({"--threads"}), "program: --threads: needs a value");
}

TEST_F(CommandErrorsTest, NoWordIsTakenForTheValueOfAnotherFlag) {
  EXPECT_EQ(Parse({"--threads=", "4"}), "program: --threads: needs a value");
  EXPECT_EQ(Parse({"--name=", "--threads=4"}), "program: --name: needs a value");
  EXPECT_EQ(Parse({"--name", "--threads=4"}), "program: --name: needs a value");
  EXPECT_EQ(Parse({"--name", "--wait"}), "program: --name: needs a value");
  EXPECT_EQ(Parse({"--name", "--other"}), "");
  EXPECT_EQ(name_, "--other");
  EXPECT_EQ(Parse({"--name=--wait", "--wait", "--threads=1"}), "");
  EXPECT_EQ(name_, "--wait");
}

}  // namespace
}  // namespace plumbline
