#ifndef PLUMBLINE_WORKER_SELFTEST_GOLDEN_FILES_H_
#define PLUMBLINE_WORKER_SELFTEST_GOLDEN_FILES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// The captures of tests/golden, embedded in the program, so that an installed worker needs no tree.

namespace plumbline::selftest {

struct GoldenFile {
  absl::string_view name;  // As in tests/golden.
  absl::string_view contents;
};

std::vector<GoldenFile> GoldenFiles();

}  // namespace plumbline::selftest

#endif  // PLUMBLINE_WORKER_SELFTEST_GOLDEN_FILES_H_
