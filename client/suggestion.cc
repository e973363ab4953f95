#include "client/suggestion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/nearest_word.h"
#include "common/vocabulary.h"

namespace plumbline::client {
namespace {

std::vector<absl::string_view> AcceptedWords(absl::string_view flag) {
  std::vector<absl::string_view> words;
  if (flag == "--layouts" || flag == "--layout") {
    for (const NamedLayout& layout : NamedLayouts()) words.push_back(layout.name);
  } else if (flag == "--inject") {
    for (const FaultInfo& fault : Faults()) words.push_back(fault.name);
  } else if (flag == "--providers") {
    words.assign(ProviderVariants().begin(), ProviderVariants().end());
  } else if (flag == "--composition") {
    words = {"provider"};
    words.insert(words.end(), Implementations().begin(), Implementations().end());
    words.insert(words.end(), BlockNodes().begin(), BlockNodes().end());
    words.insert(words.end(), NodeGroups().begin(), NodeGroups().end());
  }
  return words;
}

// The words of a value: names in a list, implementations and nodes in a composition.
std::vector<absl::string_view> WordsOf(absl::string_view flag, absl::string_view written) {
  if (flag == "--composition") {
    return absl::StrSplit(written, absl::ByAnyChar("+:,"), absl::SkipEmpty());
  }
  return absl::StrSplit(written, ',', absl::SkipEmpty());
}

}  // namespace

std::string SuggestionFor(absl::string_view flag, absl::string_view written) {
  const std::vector<absl::string_view> accepted = AcceptedWords(flag);
  if (accepted.empty()) return "";
  for (absl::string_view word : WordsOf(flag, written)) {
    if (std::find(accepted.begin(), accepted.end(), word) != accepted.end()) continue;
    const std::string nearest = NearestWord(word, accepted);
    if (!nearest.empty()) return absl::StrCat("did you mean \"", nearest, "\"?");
  }
  return "";
}

}  // namespace plumbline::client
