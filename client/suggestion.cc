#include "client/suggestion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/vocabulary.h"

namespace plumbline::client {
namespace {

// Beyond these no name of ours is meant, and the table would only cost time.
constexpr size_t kLongestWord = 64;

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

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string NearestWord(absl::string_view written, absl::Span<const absl::string_view> accepted) {
  if (written.empty() || written.size() > kLongestWord) return "";
  absl::string_view nearest;
  int least = std::max<int>(1, static_cast<int>(written.size()) / 3) + 1;
  for (absl::string_view word : accepted) {
    const int distance = EditDistance(written, word);
    if (distance < least) {
      least = distance;
      nearest = word;
    }
  }
  return std::string(nearest);
}

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
