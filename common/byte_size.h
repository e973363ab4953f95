#ifndef PLUMBLINE_COMMON_BYTE_SIZE_H_
#define PLUMBLINE_COMMON_BYTE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Reads a number of bytes as people write it: "17179869184", "16GiB", "16 GB"; units KB, MB, GB, TB
// (powers of 1000) and KiB, MiB, GiB, TiB (of 1024). INVALID_ARGUMENT names `field`; also for zero
// and for what 63 bits do not hold.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text, absl::string_view field);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_BYTE_SIZE_H_
