// Bundles of evidence: the files that `plumbline verify` is given, with sums that are right or not.
#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/evidence/bundle.h"
#include "common/sha256.h"
#include "tests/fuzz/input.h"

namespace plumbline {
namespace {

constexpr const char* kNames[] = {kBundleReport,    kBundleVerdict, kBundleSums, kBundleSignature,
                                  kBundlePublicKey, "rule.json",    "errors.csv"};

// As a bundle that was changed and summed up again has it.
std::string SumsOf(const BundleFiles& files) {
  std::string lines;
  for (const auto& [path, contents] : files) {
    absl::StrAppend(&lines, Sha256Hex(contents), "  ", path, "\n");
  }
  return absl::StrCat("# plumbline-bundle-1 ", Sha256Hex(lines), "\n", lines);
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  fuzz::Input input(data, size);
  const bool sum_up = input.Byte() % 2 == 0;
  BundleFiles files;
  while (!input.IsAtEnd()) {
    const char* const name = kNames[input.Byte() % std::size(kNames)];
    files[name] = std::string(input.Text());
  }
  if (sum_up) files.erase(kBundleSums);
  const bool whole = sum_up && !files.empty();
  if (whole) files[kBundleSums] = SumsOf(files);
  v1::VerdictReport checked;
  const absl::Status status = CheckBundleFiles(files, "", &checked);
  if (status.ok() && whole && files.count(kBundleSignature) == 0 &&
      files.count(kBundlePublicKey) == 0) {
    for (const v1::VerdictReport::File& file : checked.files()) FUZZ_REQUIRE(file.passed());
    FUZZ_REQUIRE(checked.missing_size() == 0);
  }
  const absl::StatusOr<v1::Report> report = ReportOfBundle(files);
  if (!report.ok()) return 0;
  // A report, whatever it says, makes a bundle in which all is as it should be.
  const absl::StatusOr<BundleFiles> made = MakeBundle(*report, {"{}", "{}"});
  FUZZ_REQUIRE(made.ok());
  v1::VerdictReport again;
  FUZZ_REQUIRE(CheckBundleFiles(*made, "", &again).ok());
  for (const v1::VerdictReport::File& file : again.files()) FUZZ_REQUIRE(file.passed());
  FUZZ_REQUIRE(again.missing_size() == 0);
  FUZZ_REQUIRE(ReportOfBundle(*made).ok());
  return 0;
}
