// Internal to the tables of a bundle.
#ifndef PLUMBLINE_COMMON_EVIDENCE_CSV_H_
#define PLUMBLINE_COMMON_EVIDENCE_CSV_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Lines of comma-separated values (RFC 4180).
class CsvText {
 public:
  explicit CsvText(const std::vector<absl::string_view>& header) { AddLine(header); }

  void AddLine(const std::vector<absl::string_view>& fields) {
    absl::string_view separator = "";
    for (absl::string_view field : fields) {
      absl::StrAppend(&text_, separator);
      separator = ",";
      if (field.find_first_of(",\"\r\n") == absl::string_view::npos) {
        absl::StrAppend(&text_, field);
      } else {
        absl::StrAppend(&text_, "\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
      }
    }
    text_ += "\r\n";
    ++lines_;
  }

  // Nothing but the header.
  bool empty() const { return lines_ == 1; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  int lines_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_CSV_H_
