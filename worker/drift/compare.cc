#include "worker/drift/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/difference.h"
#include "worker/drift/percentiles.h"
#include "worker/drift/tensor_rows.h"

namespace plumbline::drift {
namespace {

// Elements that one chunk of the loop over rows covers, about.
constexpr int64_t kChunkElements = 1 << 15;
// Sums along a row run in this many lanes, folded in halves, so that the loop vectorises in an
// order of its own.
constexpr int kLanes = 8;

bool IsFloat(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kF64;
}

// Stored mantissa bits and the exponent of the smallest subnormal.
struct Spacing {
  int mantissa_bits;
  int least_exponent;
};

Spacing SpacingOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return {7, -133};
    case DType::kF16:
      return {10, -24};
    case DType::kF32:
      return {23, -149};
    case DType::kF64:
      return {52, -1074};
    default:
      return {1023, 0};  // integers: 1
  }
}

// The distance of neighbours of `dtype` at `magnitude`.
double UnitAt(DType dtype, double magnitude) {
  const Spacing spacing = SpacingOf(dtype);
  if (magnitude == 0) return std::ldexp(1.0, spacing.least_exponent);
  return std::ldexp(
      1.0, std::max(std::ilogb(magnitude) - spacing.mantissa_bits, spacing.least_exponent));
}

double Fold(double* lanes) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

void AddRow(const double* reference, const double* x, int64_t width, TensorDifference* partial) {
  double difference[kLanes] = {}, ref_squares[kLanes] = {}, x_squares[kLanes] = {};
  double product[kLanes] = {}, max_abs[kLanes] = {}, max_reference[kLanes] = {};
  const auto add = [&](int64_t i, int lane) {
    const double d = reference[i] - x[i];
    difference[lane] += d * d;
    ref_squares[lane] += reference[i] * reference[i];
    x_squares[lane] += x[i] * x[i];
    product[lane] += reference[i] * x[i];
    max_abs[lane] = std::fabs(d) > max_abs[lane] ? std::fabs(d) : max_abs[lane];
    max_reference[lane] = std::fabs(reference[i]) > max_reference[lane] ? std::fabs(reference[i])
                                                                        : max_reference[lane];
  };
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (int lane = 0; i + lane < width; ++lane) add(i + lane, lane);
  partial->difference_squares += Fold(difference);
  partial->reference_squares += Fold(ref_squares);
  partial->x_squares += Fold(x_squares);
  partial->products += Fold(product);
  partial->max_abs = std::max(partial->max_abs, *std::max_element(max_abs, max_abs + kLanes));
  partial->max_reference =
      std::max(partial->max_reference, *std::max_element(max_reference, max_reference + kLanes));
}

void CountNonfinite(const double* values, int64_t width, int side, TensorDifference* partial) {
  for (int64_t i = 0; i < width; ++i) {
    if (std::isfinite(values[i])) continue;
    ++(std::isnan(values[i]) ? partial->nan : partial->infinity)[side];
  }
}

class Comparer {
 public:
  Comparer(const Tensor& reference, const Tensor& x, ThreadPool& threads)
      : reference_(reference),
        x_(x),
        threads_(threads),
        same_type_(reference.dtype == x.dtype),
        rows_(x.batch * x.rows) {
    grain_ = std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, x.width));
  }

  // Chunks are joined in their order, whichever thread did them.
  TensorDifference Run() {
    const int64_t chunks = (rows_ + grain_ - 1) / grain_;
    std::vector<TensorDifference> partials(chunks);
    threads_.ParallelFor(0, rows_, grain_, [&](int64_t first, int64_t last) {
      partials[first / grain_] = Chunk(first, last);
    });
    TensorDifference whole;
    for (const TensorDifference& part : partials) {
      whole.difference_squares += part.difference_squares;
      whole.reference_squares += part.reference_squares;
      whole.x_squares += part.x_squares;
      whole.products += part.products;
      whole.max_abs = std::max(whole.max_abs, part.max_abs);
      whole.max_reference = std::max(whole.max_reference, part.max_reference);
      whole.differing += part.differing;
      if (whole.first < 0) whole.first = part.first;
      for (int side = 0; side < 2; ++side) {
        whole.nan[side] += part.nan[side];
        whole.infinity[side] += part.infinity[side];
      }
    }
    return whole;
  }

  // |reference - x| of every element, row-major.
  std::vector<float> Differences() {
    std::vector<float> differences(rows_ * x_.width);
    threads_.ParallelFor(0, rows_, grain_, [&](int64_t first, int64_t last) {
      std::vector<double> ref(x_.width), x(x_.width);
      for (int64_t row = first; row < last; ++row) {
        Load(row, ref.data(), x.data());
        float* to = differences.data() + row * x_.width;
        for (int64_t i = 0; i < x_.width; ++i) to[i] = std::fabs(ref[i] - x[i]);
      }
    });
    return differences;
  }

 private:
  const char* Row(const Tensor& tensor, int64_t row) const {
    return RowBytes(tensor, row / tensor.rows, row % tensor.rows);
  }

  void Load(int64_t row, double* reference, double* x) const {
    WidenRow(reference_.dtype, Row(reference_, row), x_.width, reference);
    WidenRow(x_.dtype, Row(x_, row), x_.width, x);
  }

  TensorDifference Chunk(int64_t first, int64_t last) const {
    TensorDifference partial;
    std::vector<double> ref(x_.width), x(x_.width);
    for (int64_t row = first; row < last; ++row) {
      Load(row, ref.data(), x.data());
      CountDiffering(row, ref.data(), x.data(), &partial);
      AddRow(ref.data(), x.data(), x_.width, &partial);
      // A sum of squares is finite only if no value is NaN or infinity. It can overflow without
      // one, which counts nothing below.
      if (!std::isfinite(partial.x_squares)) CountNonfinite(x.data(), x_.width, 0, &partial);
      if (!std::isfinite(partial.reference_squares)) {
        CountNonfinite(ref.data(), x_.width, 1, &partial);
      }
    }
    return partial;
  }

  void CountDiffering(int64_t row, const double* reference, const double* x,
                      TensorDifference* partial) const {
    const size_t size = DTypeSize(x_.dtype);
    const char* a = Row(reference_, row);
    const char* b = Row(x_, row);
    if (same_type_ && std::memcmp(a, b, x_.width * size) == 0) return;
    for (int64_t i = 0; i < x_.width; ++i) {
      const bool differs =
          same_type_ ? std::memcmp(a + i * size, b + i * size, size) != 0 : !(reference[i] == x[i]);
      if (!differs) continue;
      ++partial->differing;
      if (partial->first < 0) partial->first = row * x_.width + i;
    }
  }

  const Tensor& reference_;
  const Tensor& x_;
  ThreadPool& threads_;
  const bool same_type_;
  const int64_t rows_;
  int64_t grain_;
};

constexpr double kFractions[] = {0.5, 0.9, 0.99, 0.999};

void SetPercentiles(const std::vector<double>& found, v1::TensorComparison* result) {
  v1::TensorComparison::Percentiles& percentiles = *result->mutable_abs_diff();
  percentiles.set_p50(found[0]);
  percentiles.set_p90(found[1]);
  percentiles.set_p99(found[2]);
  percentiles.set_p99_9(found[3]);
}

void SetNan(v1::TensorComparison* result) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  result->set_relative_l2(nan);
  result->set_max_abs(nan);
  result->set_cosine(nan);
  result->set_max_u(nan);
  v1::TensorComparison::Percentiles& percentiles = *result->mutable_abs_diff();
  percentiles.set_p50(nan);
  percentiles.set_p90(nan);
  percentiles.set_p99(nan);
  percentiles.set_p99_9(nan);
}

double Cosine(const TensorDifference& found) {
  const double norms = std::sqrt(found.reference_squares) * std::sqrt(found.x_squares);
  if (norms > 0) return std::clamp(found.products / norms, -1.0, 1.0);
  return found.reference_squares == found.x_squares ? 1 : 0;
}

// What is known without looking at a value. False, with the reason in `incomparable`: no value may
// be looked at.
bool Describe(absl::string_view reference_name, const ComparedTensor& reference,
              absl::string_view name, const ComparedTensor& x, v1::TensorComparison* result) {
  result->set_reference(std::string(reference_name));
  result->set_subject(std::string(name));
  for (int64_t size : x.shape) result->add_shape(size);
  const DType type = x.tensor.dtype, reference_type = reference.tensor.dtype;
  result->set_dtype(std::string(DTypeName(type)));
  result->set_reference_dtype(std::string(DTypeName(reference_type)));
  result->set_sha256(x.sha256);
  result->set_reference_sha256(reference.sha256);
  if (x.shape != reference.shape) {
    result->set_incomparable(
        absl::StrCat("shape ", ShapeText(reference.shape), " against ", ShapeText(x.shape)));
    return false;
  }
  if (type != reference_type && !(IsFloat(type) && IsFloat(reference_type))) {
    result->set_incomparable(
        absl::StrCat("type ", DTypeName(reference_type), " against ", DTypeName(type)));
    return false;
  }
  return true;
}

// The measures that follow from what was found; percentiles aside. False: a value is not finite.
bool SetMeasures(const TensorDifference& found, const Tensor& x, const RowNamer& name_row,
                 v1::TensorComparison* result) {
  result->set_bitwise_equal(found.differing == 0);
  result->set_differing_elements(found.differing);
  if (found.first >= 0) {
    const int64_t row = found.first / x.width;
    *result->mutable_first_differing_row() = name_row(row / x.rows, row % x.rows);
  }
  v1::TensorComparison::Nonfinite& nonfinite = *result->mutable_nonfinite();
  nonfinite.set_nan(found.nan[0]);
  nonfinite.set_infinity(found.infinity[0]);
  nonfinite.set_reference_nan(found.nan[1]);
  nonfinite.set_reference_infinity(found.infinity[1]);
  result->set_norm(std::sqrt(found.x_squares));
  result->set_reference_norm(std::sqrt(found.reference_squares));
  result->set_zero_reference(found.reference_squares == 0);
  if (found.nan != std::array<int64_t, 2>{} || found.infinity != std::array<int64_t, 2>{}) {
    SetNan(result);
    return false;
  }
  const double distance = std::sqrt(found.difference_squares);
  result->set_relative_l2(result->zero_reference() ? result->norm()
                                                   : distance / result->reference_norm());
  result->set_max_abs(found.max_abs);
  result->set_max_u(found.max_abs / UnitAt(x.dtype, found.max_reference));
  result->set_cosine(Cosine(found));
  result->mutable_abs_diff();
  return true;
}

}  // namespace

ComparedTensor AsComparedTensor(const void* data, DType dtype, const std::vector<int64_t>& shape) {
  int64_t batch = 1, rows = 1, width = 1;
  if (shape.size() == 1) {
    width = shape[0];
  } else if (shape.size() == 2) {
    rows = shape[0];
    width = shape[1];
  } else if (shape.size() > 2) {
    batch = shape[0];
    rows = shape[1];
    for (size_t i = 2; i < shape.size(); ++i) width *= shape[i];
  }
  return {Tensor::Dense(const_cast<void*>(data), dtype, batch, rows, width), shape, ""};
}

int ComparisonThreads(Device& device) {
  if (device.Context().threads != nullptr) return 1;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

v1::RowLocation NameOtherRow(int64_t batch, int64_t row) {
  v1::RowLocation location;
  location.set_batch(static_cast<int32_t>(batch));
  location.set_row(static_cast<int32_t>(row));
  location.set_kind(v1::ROW_KIND_OTHER);
  return location;
}

std::string TensorSha256(const Tensor& tensor) {
  Sha256 hash;
  const int64_t row_bytes = tensor.width * static_cast<int64_t>(DTypeSize(tensor.dtype));
  if (tensor.IsDense()) {
    hash.Update({reinterpret_cast<const uint8_t*>(tensor.data), tensor.NumBytes()});
    return hash.FinishHex();
  }
  for (int64_t item = 0; item < tensor.batch; ++item) {
    for (int64_t row = 0; row < tensor.rows; ++row) {
      hash.Update({reinterpret_cast<const uint8_t*>(RowBytes(tensor, item, row)),
                   static_cast<size_t>(row_bytes)});
    }
  }
  return hash.FinishHex();
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), ")");
}

v1::TensorComparison CompareTensors(absl::string_view reference_name,
                                    const ComparedTensor& reference, absl::string_view name,
                                    const ComparedTensor& x, const RowNamer& name_row,
                                    ThreadPool& threads) {
  v1::TensorComparison result;
  const bool comparable = Describe(reference_name, reference, name, x, &result);
  if (x.sha256.empty()) result.set_sha256(TensorSha256(x.tensor));
  if (reference.sha256.empty()) result.set_reference_sha256(TensorSha256(reference.tensor));
  if (!comparable) return result;
  Comparer comparer(reference.tensor, x.tensor, threads);
  const TensorDifference found = comparer.Run();
  if (SetMeasures(found, x.tensor, name_row, &result) && found.max_abs > 0) {
    SetPercentiles(Percentiles(comparer.Differences(), kFractions, threads), &result);
  }
  return result;
}

absl::StatusOr<v1::TensorComparison> CompareOnDevice(
    Device& device, absl::string_view reference_name, const ComparedTensor& reference,
    absl::string_view name, const ComparedTensor& x, const RowNamer& name_row,
    ThreadPool& threads) {
  if (device.kind() == DeviceKind::kCpu) {
    return CompareTensors(reference_name, reference, name, x, name_row, threads);
  }
  v1::TensorComparison result;
  if (!Describe(reference_name, reference, name, x, &result)) return result;
  const int64_t count = x.tensor.NumElements();
  std::vector<int64_t> ranks;
  if (count > 0) ranks = PercentileRanks(count, kFractions);
  PLUMBLINE_ASSIGN_OR_RETURN(const TensorDifference found,
                             device.Difference(reference.tensor, x.tensor, ranks));
  if (!SetMeasures(found, x.tensor, name_row, &result) || found.by_rank.empty()) return result;
  std::map<int64_t, float> by_rank;
  for (size_t i = 0; i < ranks.size(); ++i) by_rank[ranks[i]] = found.by_rank[i];
  SetPercentiles(InterpolatePercentiles(count, kFractions, by_rank), &result);
  return result;
}

}  // namespace plumbline::drift
