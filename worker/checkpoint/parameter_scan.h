#ifndef PLUMBLINE_WORKER_CHECKPOINT_PARAMETER_SCAN_H_
#define PLUMBLINE_WORKER_CHECKPOINT_PARAMETER_SCAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/dtype.h"
#include "common/sha256.h"

namespace plumbline::checkpoint {

// What one pass over a tensor's values finds.
struct Figures {
  std::string sha256;            // Hex, of its bytes.
  double norm = 0;               // L2 over the finite values, in float64.
  int64_t nonfinite = 0;         // NaN and infinity together.
  int64_t first_nonfinite = -1;  // Index of the first one.
  // L2 of each part, in order: heads of an attention projection, halves of a feed-forward
  // projection, else the whole tensor. Float64 sums in a fixed order, so that equal rows give equal
  // bits wherever they stand.
  std::vector<double> part_norms;
  // The sum, modulo 2^64, of a hash of each row's values, bit for bit: the same for the same rows
  // in any order, and additive over tensors.
  uint64_t row_sum = 0;

  // Hex digest of `part_norms`, to 12 decimal digits.
  std::string Fingerprint() const;
};

// Takes the bytes of one tensor in any order of rows and measures it as if they came in order. One
// thread at a time.
class ParameterScan {
 public:
  // `rows` of `row_bytes` bytes, of `type`; the rows fall into `parts` equal parts, which must
  // divide them.
  ParameterScan(DType type, int64_t rows, int64_t row_bytes, int64_t parts);

  // Bytes that begin at `offset` of the tensor; a piece never ends within a value. What comes ahead
  // of its place is kept until the gap is closed. Each byte must come once.
  void Add(int64_t offset, absl::Span<const uint8_t> bytes);

  // After every byte.
  Figures Finish();

 private:
  void Take(absl::Span<const uint8_t> bytes);
  template <int kValueBytes, typename Load>
  void Measure(absl::Span<const uint8_t> bytes, Load load);
  void EndRow();

  const DType type_;
  const int64_t row_bytes_;
  const int64_t rows_in_part_;
  int64_t taken_bytes_ = 0;
  std::map<int64_t, std::string> ahead_;  // By offset.
  Sha256 hash_;
  // Of the row that is being read: sums of squares, a fixed lane for each value.
  double lanes_[8] = {};
  uint64_t lane_hashes_[8] = {};
  double part_square_ = 0;
  double square_ = 0;
  Figures figures_;
};

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_PARAMETER_SCAN_H_
