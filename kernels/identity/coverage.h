#ifndef PLUMBLINE_KERNELS_IDENTITY_COVERAGE_H_
#define PLUMBLINE_KERNELS_IDENTITY_COVERAGE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the coverage test asks about a source tree and the options it is compiled with.

namespace plumbline {

// Whether the folders named cuda are part of a build.
enum class CudaSources { kBuilt, kLeftOut };

// Paths from `root` of every C++, CUDA and assembler source and header in kernels/ and worker/h3,
// sorted, tests (*_test.cc, *_test.cu) left out, and folders named cuda where they are not built.
// NOT_FOUND if `root` is no workspace.
absl::StatusOr<std::vector<std::string>> ListSources(const std::string& root, CudaSources cuda);

// One line for each source under `root` that is neither in `covered` (SHA-256 by path) nor in
// `test_support`, and for each covered one whose bytes are not those that were hashed or that asks
// the compiler for other arithmetic by itself (pragmas and attributes); empty when all is well.
absl::StatusOr<std::vector<std::string>> FindGaps(const std::string& root, CudaSources cuda,
                                                  const std::map<std::string, std::string>& covered,
                                                  const std::set<std::string>& test_support);

// The options among `options`, a command line of g++, Clang or nvcc, that let a compiler or a
// linker change the value of a floating-point expression.
std::vector<std::string> FastMathOptions(absl::string_view options);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_IDENTITY_COVERAGE_H_
