#include "common/evidence/bundle.h"

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
#include "common/evidence/figures.h"
#include "common/evidence/redact.h"
#include "common/evidence/run_tables.h"
#include "common/evidence/signature.h"
#include "common/files.h"
#include "common/proto_json.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;

constexpr char kIdentityFile[] = "identity.json";

constexpr size_t kMostFiles = 1024;
constexpr size_t kMostFileBytes = size_t{512} << 20;
constexpr size_t kMostBundleBytes = size_t{1} << 30;
constexpr size_t kMostPathCharacters = 128;
// Begins SHA256SUMS; behind it stands the digest of the lines that follow. `sha256sum -c` reads it
// as a comment.
constexpr absl::string_view kSumsHead = "# plumbline-bundle-1 ";

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  return ProtoJson(message, options);
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
  return absl::StrCat(kSumsHead, Sha256Hex(text), "\n", text);
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

// What SHA256SUMS says; false where it is not what its first line says, or a line says nothing.
bool ReadSums(absl::string_view text, std::map<std::string, std::string>* digests) {
  bool whole = absl::ConsumePrefix(&text, kSumsHead);
  const size_t end = text.find('\n');
  const absl::string_view digest_of_rest = text.substr(0, end);
  text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  whole = whole && digest_of_rest == Sha256Hex(text) && absl::ConsumeSuffix(&text, "\n");
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

// Whether the signature verifies under the bundle's own key and under the given one.
absl::StatusOr<bool> IsSigned(const BundleFiles& files, const std::string& sums,
                              const std::string& signature, const std::string& public_key_pem,
                              v1::VerdictReport* report) {
  const auto own_key = files.find(kBundlePublicKey);
  // A key of the bundle's that is none is its own finding.
  const bool own =
      own_key != files.end() && VerifyEd25519(own_key->second, sums, signature).value_or(false);
  if (public_key_pem.empty()) return own;
  PLUMBLINE_ASSIGN_OR_RETURN(const bool valid, VerifyEd25519(public_key_pem, sums, signature));
  report->set_signature_valid(valid);
  return own && valid;
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

absl::StatusOr<BundleFiles> MakeBundle(v1::Report report, const std::vector<std::string>& rules,
                                       const std::string& signing_key_pem) {
  Redact(&report);
  BundleFiles files;
  PLUMBLINE_ASSIGN_OR_RETURN(files[kBundleReport], MessageJson(report));
  PLUMBLINE_ASSIGN_OR_RETURN(files[kBundleVerdict], VerdictJson(report));
  PLUMBLINE_ASSIGN_OR_RETURN(files[kIdentityFile], IdentityJson(report));
  const std::pair<const char*, std::string> tables[] = {
      {"errors.csv", ErrorTableCsv(report)},
      {"timings.csv", TimingTableCsv(report)},
      {"latent_drift.csv", LatentDriftCsv(report)},
      {"quality.csv", QualityCsv(report)}};
  for (const auto& [path, text] : tables) {
    if (!text.empty()) files[path] = text;
  }
  for (auto& [path, svg] : Figures(report)) files[path] = svg;
  for (size_t i = 0; i < rules.size(); ++i) {
    files[rules.size() == 1 ? "rule.json" : absl::StrCat("rule-", i + 1, ".json")] = rules[i];
  }
  if (!signing_key_pem.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(files[kBundlePublicKey], PublicKeyOf(signing_key_pem));
  }
  files[kBundleSums] = Sums(files);
  if (!signing_key_pem.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(files[kBundleSignature],
                               SignEd25519(signing_key_pem, files[kBundleSums]));
  }
  return files;
}

absl::Status WriteBundle(const BundleFiles& files, const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool made = !fs::exists(directory, error);
  fs::create_directories(directory, error);
  if (error) return FileError(directory, "cannot be made", error.value());
  const bool empty = std::filesystem::is_empty(directory, error);
  if (error) return FileError(directory, "cannot be read", error.value());
  if (!empty) {
    return absl::AlreadyExistsError(
        absl::StrCat(directory, ": is not empty; accepted: a new or an empty folder"));
  }
  for (const auto& [path, contents] : files) {
    const absl::Status written = WriteFileAtomically(absl::StrCat(directory, "/", path), contents);
    if (written.ok()) continue;
    // Part of a bundle is none, and would be in the way of the next try.
    for (const auto& [each, unused] : files) fs::remove(fs::path(directory) / each, error);
    if (made) fs::remove(directory, error);
    return written;
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
    PLUMBLINE_ASSIGN_OR_RETURN(files[name], ReadEntry(entry->path().string(), kMostFileBytes));
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

absl::Status CheckBundleFiles(const BundleFiles& files, const std::string& public_key_pem,
                              v1::VerdictReport* report) {
  std::map<std::string, std::string> expected;
  bool sums_are_whole = false;
  std::string sums;
  if (const auto found = files.find(kBundleSums); found != files.end()) {
    sums = found->second;
    sums_are_whole = ReadSums(sums, &expected);
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
    if (path == kBundleSignature) {
      report->set_signature_present(true);
      PLUMBLINE_ASSIGN_OR_RETURN(const bool valid,
                                 IsSigned(files, sums, contents, public_key_pem, report));
      file.set_passed(valid);
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
  // A key in it speaks of a signature.
  const bool unsigned_key = expected.count(kBundlePublicKey) > 0 && !report->signature_present();
  if (unsigned_key || (!public_key_pem.empty() && !report->signature_present())) {
    report->add_missing(kBundleSignature);
  }
  return absl::OkStatus();
}

}  // namespace plumbline
