// What the fuzzers of this folder share.
#ifndef PLUMBLINE_TESTS_FUZZ_INPUT_H_
#define PLUMBLINE_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plumbline::fuzz {

// The bytes of one try.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  // The next byte; 0 where there is none.
  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  absl::string_view Rest() const { return {reinterpret_cast<const char*>(data_), size_}; }
  absl::Span<const uint8_t> Bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Ends the process, as a fault that was found, unless `holds`.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace plumbline::fuzz

#define FUZZ_REQUIRE(condition) ::plumbline::fuzz::Require((condition), #condition)

#endif  // PLUMBLINE_TESTS_FUZZ_INPUT_H_
