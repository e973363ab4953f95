#include "client/facts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::client {

std::string Fact(absl::string_view label, absl::string_view text, const Style& style) {
  constexpr int kTextColumn = 15;
  const std::string padding(static_cast<size_t>(kTextColumn - 2 - DisplayWidth(label)), ' ');
  return absl::StrCat("  ", style.Paint(Ink::kFaint, label), padding,
                      Wrap(text, kTextColumn, kTextColumn, style.columns), "\n");
}

std::string JoinFacts(std::vector<std::string> facts, const Style& style) {
  facts.erase(std::remove(facts.begin(), facts.end(), std::string()), facts.end());
  return absl::StrJoin(facts, absl::StrCat("  ", style.Dot(), "  "));
}

}  // namespace plumbline::client
