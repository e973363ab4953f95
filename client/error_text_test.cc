#include "client/error_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/style.h"
#include "client/suggestion.h"
#include "common/nearest_word.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

TEST(SuggestionTest, NearNamesOfTheFlag) {
  EXPECT_EQ(SuggestionFor("--layouts", "tinny"), "did you mean \"tiny\"?");
  EXPECT_EQ(SuggestionFor("--inject", "qk-head"), "did you mean \"qk-heads\"?");
  EXPECT_EQ(SuggestionFor("--composition", "candidate+provider:atention"),
            "did you mean \"attention\"?");
  EXPECT_EQ(SuggestionFor("--layouts", "tiny"), "");
  EXPECT_EQ(SuggestionFor("--layouts", "somethingelse"), "");
  EXPECT_EQ(SuggestionFor("--checkpoint", "tinny"), "");
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
}

TEST(ErrorTextTest, NamesTheFlagTheFieldAndTheAcceptedValues) {
  FlagNames flags;
  flags.Add("block_replay.layouts[0]", "--layouts", "tinny");
  flags.Add("block_replay.layouts", "--layouts", "");
  const absl::Status status =
      FieldError("spec.block_replay.layouts[0].name", "unknown layout \"tinny\"", "tiny, small");
  EXPECT_EQ(ErrorText(status, flags, Style()),
            "INVALID_ARGUMENT: the request cannot be accepted\n"
            "  --layouts (spec.block_replay.layouts[0].name): unknown layout \"tinny\"; accepted: "
            "tiny, small\n"
            "    did you mean \"tiny\"?\n");
}

TEST(ErrorTextTest, APlaceInAFileIsTheFlagsThatNamedIt) {
  FlagNames flags;
  flags.Add("full_model.rule", "--rule", "rule.json");
  EXPECT_EQ(flags.Find("full_model.rule: binds.device_class")->flag, "--rule");
  EXPECT_EQ(flags.Find("full_model.rules"), nullptr);
  // Of errors without details too.
  EXPECT_EQ(ErrorText(absl::InvalidArgumentError("full_model.rule: NUL byte"), flags, Style()),
            "INVALID_ARGUMENT: --rule (full_model.rule): NUL byte\n");
  EXPECT_EQ(ErrorText(absl::NotFoundError("jobs/7: full_model.rule: gone"), flags, Style()),
            "NOT_FOUND: jobs/7: full_model.rule: gone\n");
}

TEST(ErrorTextTest, AFilesContentsAreToldByTheFilesName) {
  FlagNames flags;
  flags.AddFile("full_model.rule", "--rule", "my/rule.json");
  flags.AddFile("rule.show", "RULE", "my/rule.json");
  EXPECT_EQ(ErrorText(FieldError("full_model.rule", "lacks format", "an object"), flags, Style()),
            "INVALID_ARGUMENT: the request cannot be accepted\n"
            "  --rule=my/rule.json (full_model.rule): lacks format; accepted: an object\n");
  EXPECT_EQ(ErrorText(absl::InvalidArgumentError("rule.show: not valid JSON at \"x\", line 4"),
                      flags, Style()),
            "INVALID_ARGUMENT: RULE my/rule.json (rule.show): not valid JSON at \"x\", line 4\n");
  // Once is enough.
  EXPECT_EQ(ErrorText(absl::InvalidArgumentError("full_model.rule: my/rule.json: is empty"), flags,
                      Style()),
            "INVALID_ARGUMENT: --rule (full_model.rule): my/rule.json: is empty\n");
}

TEST(ErrorTextTest, ManyFieldsAreCounted) {
  std::vector<FieldViolation> violations;
  for (int i = 0; i < 20; ++i) violations.push_back({absl::StrCat("f", i), "is wrong"});
  const std::string text =
      ErrorText(WithFieldViolations(absl::InvalidArgumentError("is wrong"), violations),
                FlagNames(), Style());
  EXPECT_TRUE(absl::StrContains(text, "20 fields cannot be accepted\n  f0: is wrong\n")) << text;
  EXPECT_TRUE(absl::EndsWith(text, "  f5: is wrong\n  and 14 more of the kind\n")) << text;
}

TEST(ErrorTextTest, KeepsAMessageThatSaysMore) {
  const absl::Status status = WithFieldViolations(
      absl::InvalidArgumentError("model.safetensors: cut short"), {{"checkpoint", "is damaged"}});
  EXPECT_EQ(ErrorText(status, FlagNames(), Style()),
            "INVALID_ARGUMENT: model.safetensors: cut short\n"
            "  checkpoint: is damaged\n");
  EXPECT_EQ(ErrorText(absl::NotFoundError("jobs/7 is not there"), FlagNames(), Style()),
            "NOT_FOUND: jobs/7 is not there\n");
}

TEST(FlagNamesTest, TakesTheNearestFieldAround) {
  FlagNames flags;
  flags.Add("block_replay.layouts", "--layouts", "");
  flags.Add("block_replay.layouts[1]", "--layout", "1,2");
  EXPECT_EQ(flags.Find("spec.block_replay.layouts[1].height")->flag, "--layout");
  EXPECT_EQ(flags.Find("block_replay.layouts[10]")->flag, "--layouts");
  EXPECT_EQ(flags.Find("block_replay.layouts_more"), nullptr);
}

}  // namespace
}  // namespace plumbline::client
