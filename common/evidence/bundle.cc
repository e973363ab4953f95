#include "common/evidence/bundle.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/evidence/error_table.h"
#include "common/evidence/redact.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;

constexpr char kIdentityFile[] = "identity.json";
constexpr char kErrorsFile[] = "errors.csv";

constexpr size_t kMostFiles = 1024;
constexpr size_t kMostFileBytes = size_t{512} << 20;
constexpr size_t kMostBundleBytes = size_t{1} << 30;
constexpr size_t kMostPathCharacters = 128;

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.GetTypeName(), ": ", std::string(status.message())));
  }
  return text;
}

// As a value of a larger file. A message's own JSON is JSON.
absl::StatusOr<json> MessageValue(const google::protobuf::Message& message) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, MessageJson(message));
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string FileOf(const json& value) { return value.dump(1) + "\n"; }

absl::StatusOr<std::string> IdentityJson(const v1::Report& report) {
  json tasks = json::array();
  for (const v1::TaskReport& task : report.tasks()) {
    json references = json::object();
    for (const auto& [composition, identity] : task.reference_identities()) {
      PLUMBLINE_ASSIGN_OR_RETURN(references[composition], MessageValue(identity));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(json identity, MessageValue(task.identity()));
    tasks.push_back({{"title", task.title()},
                     {"composition", task.composition()},
                     {"identity", std::move(identity)},
                     {"reference_identities", std::move(references)}});
  }
  return FileOf({{"tasks", std::move(tasks)}});
}

// "HEX  PATH", as sha256sum writes and checks it.
std::string Sums(const BundleFiles& files) {
  std::string text;
  for (const auto& [path, contents] : files) {
    absl::StrAppend(&text, Sha256Hex(contents), "  ", path, "\n");
  }
  return text;
}

bool IsPlainPath(absl::string_view path) {
  return !path.empty() && path.size() <= kMostPathCharacters && path.front() != '.' &&
         std::all_of(path.begin(), path.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

bool IsDigest(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || ('a' <= c && c <= 'f');
         });
}

// What SHA256SUMS says; false where a line of it says nothing.
bool ReadSums(absl::string_view text, std::map<std::string, std::string>* digests) {
  bool whole = absl::ConsumeSuffix(&text, "\n");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view digest = line.substr(0, 64);
    absl::string_view path = line.substr(std::min<size_t>(64, line.size()));
    if (!IsDigest(digest) || !absl::ConsumePrefix(&path, "  ") || !IsPlainPath(path) ||
        !digests->emplace(path, digest).second) {
      whole = false;
    }
  }
  return whole;
}

}  // namespace

absl::StatusOr<std::string> VerdictJson(const v1::Report& report) {
  json tasks = json::array();
  for (const v1::TaskReport& task : report.tasks()) {
    PLUMBLINE_ASSIGN_OR_RETURN(json verdict, MessageValue(task.verdict()));
    tasks.push_back({{"title", task.title()}, {"verdict", std::move(verdict)}});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(json verdict, MessageValue(report.verdict()));
  return FileOf({{"verdict", std::move(verdict)}, {"tasks", std::move(tasks)}});
}

absl::StatusOr<BundleFiles> MakeBundle(v1::Report report, const std::vector<std::string>& rules) {
  Redact(&report);
  BundleFiles files;
  PLUMBLINE_ASSIGN_OR_RETURN(files[kBundleReport], MessageJson(report));
  PLUMBLINE_ASSIGN_OR_RETURN(files[kBundleVerdict], VerdictJson(report));
  PLUMBLINE_ASSIGN_OR_RETURN(files[kIdentityFile], IdentityJson(report));
  files[kErrorsFile] = ErrorTableCsv(report);
  for (size_t i = 0; i < rules.size(); ++i) {
    files[rules.size() == 1 ? "rule.json" : absl::StrCat("rule-", i + 1, ".json")] = rules[i];
  }
  files[kBundleSums] = Sums(files);
  return files;
}

absl::Status WriteBundle(const BundleFiles& files, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return FileError(directory, "cannot be made", error.value());
  const bool empty = std::filesystem::is_empty(directory, error);
  if (error) return FileError(directory, "cannot be read", error.value());
  if (!empty) {
    return absl::AlreadyExistsError(
        absl::StrCat(directory, ": is not empty; accepted: a new or an empty folder"));
  }
  for (const auto& [path, contents] : files) {
    PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/", path), contents));
  }
  return absl::OkStatus();
}

absl::StatusOr<BundleFiles> ReadBundle(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error) return FileError(directory, "cannot be read", error.value());
  BundleFiles files;
  size_t bytes = 0;
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (error) return FileError(directory, "cannot be read", error.value());
    const std::string name = entry->path().filename().string();
    if (!IsPlainPath(name)) {
      return FieldError(directory, absl::StrCat("holds ", Quoted(name)),
                        "names of letters, digits, '.', '_' and '-'");
    }
    PLUMBLINE_ASSIGN_OR_RETURN(files[name], ReadFile(entry->path().string(), kMostFileBytes));
    bytes += files[name].size();
    if (files.size() > kMostFiles || bytes > kMostBundleBytes) {
      return FieldError(
          directory, "is too large for a bundle",
          absl::StrCat("up to ", kMostFiles, " files of ", kMostBundleBytes, " bytes together"));
    }
  }
  return files;
}

absl::StatusOr<v1::Report> ReportOfBundle(const BundleFiles& files) {
  const auto text = files.find(kBundleReport);
  if (text == files.end()) return FieldError(kBundleReport, "is missing");
  v1::Report report;
  const auto status = google::protobuf::util::JsonStringToMessage(text->second, &report);
  if (!status.ok()) {
    return FieldError(kBundleReport, absl::StrCat("is no report: ", std::string(status.message())));
  }
  return report;
}

void CheckBundleFiles(const BundleFiles& files, v1::VerdictReport* report) {
  std::map<std::string, std::string> expected;
  bool sums_are_whole = false;
  if (const auto sums = files.find(kBundleSums); sums != files.end()) {
    sums_are_whole = ReadSums(sums->second, &expected);
  } else {
    report->add_missing(kBundleSums);
  }
  for (const auto& [path, contents] : files) {
    v1::VerdictReport::File& file = *report->add_files();
    file.set_path(path);
    file.set_sha256(Sha256Hex(contents));
    if (path == kBundleSums) {
      file.set_passed(sums_are_whole);
      continue;
    }
    const auto listed = expected.find(path);
    if (listed == expected.end()) continue;
    file.set_expected_sha256(listed->second);
    file.set_passed(file.sha256() == file.expected_sha256());
  }
  for (const auto& [path, digest] : expected) {
    if (files.count(path) == 0) report->add_missing(path);
  }
}

}  // namespace plumbline
