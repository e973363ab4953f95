#include "common/nearest_word.h"

#include <algorithm>
#include <vector>

namespace plumbline {
namespace {

// Beyond these no name of ours is meant, and the table would only cost time.
constexpr size_t kLongestWord = 64;

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

}  // namespace plumbline
