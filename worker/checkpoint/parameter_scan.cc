#include "worker/checkpoint/parameter_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plumbline::checkpoint {
namespace {

constexpr int64_t kLanes = 8;

// The finaliser of splitmix64: neighbouring values come out far apart.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

double LoadBf16(const uint8_t* bytes) {
  const uint32_t bits = (uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double LoadF16(const uint8_t* bytes) {
  const uint32_t bits = uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8;
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 0x1f) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

// The hash of a lane's values with one more, whose bits are given. Not Mix(), which takes twice as
// long: every value passes through here.
uint64_t Append(uint64_t hash, uint64_t bits) {
  hash = (hash ^ bits) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 32);
}

template <typename Value>
double LoadNative(const uint8_t* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof(value));
  return static_cast<double>(value);
}

}  // namespace

std::string Figures::Fingerprint() const {
  std::string text;
  for (double norm : part_norms) absl::StrAppendFormat(&text, "%.12g\n", norm);
  return Sha256Hex(text);
}

ParameterScan::ParameterScan(DType type, int64_t rows, int64_t row_bytes, int64_t parts)
    : type_(type), row_bytes_(row_bytes), rows_in_part_(std::max<int64_t>(1, rows / parts)) {}

void ParameterScan::Add(int64_t offset, absl::Span<const uint8_t> bytes) {
  if (offset != taken_bytes_) {
    std::string& kept = ahead_[offset];
    kept.assign(bytes.begin(), bytes.end());
    return;
  }
  Take(bytes);
  for (auto next = ahead_.begin(); next != ahead_.end() && next->first == taken_bytes_;
       next = ahead_.begin()) {
    const std::string kept = std::move(next->second);
    ahead_.erase(next);
    Take({reinterpret_cast<const uint8_t*>(kept.data()), kept.size()});
  }
}

void ParameterScan::Take(absl::Span<const uint8_t> bytes) {
  hash_.Update(bytes);
  switch (type_) {
    case DType::kBF16:
      return Measure<2>(bytes, LoadBf16);
    case DType::kF16:
      return Measure<2>(bytes, LoadF16);
    case DType::kF32:
      return Measure<4>(bytes, LoadNative<float>);
    case DType::kF64:
      return Measure<8>(bytes, LoadNative<double>);
    case DType::kI32:
      return Measure<4>(bytes, LoadNative<int32_t>);
    case DType::kI64:
      return Measure<8>(bytes, LoadNative<int64_t>);
    case DType::kU8:
      return Measure<1>(bytes, LoadNative<uint8_t>);
  }
}

template <int kValueBytes, typename Load>
void ParameterScan::Measure(absl::Span<const uint8_t> bytes, Load load) {
  const uint8_t* at = bytes.data();
  int64_t left = static_cast<int64_t>(bytes.size()) / kValueBytes;
  while (left > 0) {
    const int64_t in_row = taken_bytes_ % row_bytes_ / kValueBytes;
    const int64_t count = std::min(left, row_bytes_ / kValueBytes - in_row);
    for (int64_t i = 0; i < count; ++i) {
      const double value = load(at + i * kValueBytes);
      const double square = value * value;
      uint64_t bits = 0;
      std::memcpy(&bits, at + i * kValueBytes, kValueBytes);
      const int64_t lane = (in_row + i) % kLanes;
      lane_hashes_[lane] = Append(lane_hashes_[lane], bits);
      if (std::isfinite(value)) {
        lanes_[lane] += square;
      } else {
        if (figures_.nonfinite++ == 0) figures_.first_nonfinite = taken_bytes_ / kValueBytes + i;
      }
    }
    at += count * kValueBytes;
    left -= count;
    taken_bytes_ += count * kValueBytes;
    if (taken_bytes_ % row_bytes_ == 0) EndRow();
  }
}

void ParameterScan::EndRow() {
  double square = 0;
  uint64_t hash = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    square += lanes_[lane];
    lanes_[lane] = 0;
    hash = Mix(hash ^ lane_hashes_[lane]);
    lane_hashes_[lane] = 0;
  }
  figures_.row_sum += hash;
  part_square_ += square;
  if (taken_bytes_ / row_bytes_ % rows_in_part_ == 0) {
    figures_.part_norms.push_back(std::sqrt(part_square_));
    square_ += part_square_;
    part_square_ = 0;
  }
}

Figures ParameterScan::Finish() {
  figures_.sha256 = hash_.FinishHex();
  figures_.norm = std::sqrt(square_);
  return std::move(figures_);
}

}  // namespace plumbline::checkpoint
