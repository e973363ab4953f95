// What the fuzzers of this folder share.
#ifndef PLUMBLINE_TESTS_FUZZ_INPUT_H_
#define PLUMBLINE_TESTS_FUZZ_INPUT_H_

#include <algorithm>
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
  // The next bytes as a number, little-endian; 0 for those that there are not.
  template <typename T>
  T Number() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{Byte()} << (8 * i);
    return static_cast<T>(value);
  }
  // As many of the next bytes as the two before them say, and there are.
  absl::string_view Text() {
    const size_t size = std::min<size_t>(Number<uint16_t>(), size_);
    const absl::string_view text = Rest().substr(0, size);
    data_ += size;
    size_ -= size;
    return text;
  }
  bool IsAtEnd() const { return size_ == 0; }
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
