#include "worker/drift/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/sha256.h"
#include "worker/drift/percentiles.h"
#include "worker/drift/tensor_rows.h"

namespace plumbline::drift {
namespace {

// Elements that one chunk of the loop over rows covers, about.
constexpr int64_t kChunkElements = 1 << 15;
// Sums along a row run in this many lanes, folded in halves, so that the loop vectorises in an
// order of its own.
constexpr int kLanes = 8;

struct Sums {
  double difference = 0;  // of squares
  double reference = 0;
  double x = 0;
  double product = 0;
};

// What one chunk of rows found.
struct Partial {
  Sums sums;
  double max_abs = 0;
  double max_reference = 0;
  int64_t differing = 0;
  int64_t first_row = -1;  // over all batch items
  std::array<int64_t, 2> nan{};
  std::array<int64_t, 2> infinity{};
};

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

void AddRow(const double* reference, const double* x, int64_t width, Partial* partial) {
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
  partial->sums.difference += Fold(difference);
  partial->sums.reference += Fold(ref_squares);
  partial->sums.x += Fold(x_squares);
  partial->sums.product += Fold(product);
  partial->max_abs = std::max(partial->max_abs, *std::max_element(max_abs, max_abs + kLanes));
  partial->max_reference =
      std::max(partial->max_reference, *std::max_element(max_reference, max_reference + kLanes));
}

void CountNonfinite(const double* values, int64_t width, int side, Partial* partial) {
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
  Partial Run() {
    const int64_t chunks = (rows_ + grain_ - 1) / grain_;
    std::vector<Partial> partials(chunks);
    threads_.ParallelFor(0, rows_, grain_, [&](int64_t first, int64_t last) {
      partials[first / grain_] = Chunk(first, last);
    });
    Partial whole;
    for (const Partial& part : partials) {
      whole.sums.difference += part.sums.difference;
      whole.sums.reference += part.sums.reference;
      whole.sums.x += part.sums.x;
      whole.sums.product += part.sums.product;
      whole.max_abs = std::max(whole.max_abs, part.max_abs);
      whole.max_reference = std::max(whole.max_reference, part.max_reference);
      whole.differing += part.differing;
      if (whole.first_row < 0) whole.first_row = part.first_row;
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

  Partial Chunk(int64_t first, int64_t last) const {
    Partial partial;
    std::vector<double> ref(x_.width), x(x_.width);
    for (int64_t row = first; row < last; ++row) {
      Load(row, ref.data(), x.data());
      const int64_t differing = Differing(row, ref.data(), x.data());
      if (differing > 0 && partial.first_row < 0) partial.first_row = row;
      partial.differing += differing;
      AddRow(ref.data(), x.data(), x_.width, &partial);
      // A sum of squares is finite only if no value is NaN or infinity. It can overflow without
      // one, which counts nothing below.
      if (!std::isfinite(partial.sums.x)) CountNonfinite(x.data(), x_.width, 0, &partial);
      if (!std::isfinite(partial.sums.reference)) {
        CountNonfinite(ref.data(), x_.width, 1, &partial);
      }
    }
    return partial;
  }

  int64_t Differing(int64_t row, const double* reference, const double* x) const {
    int64_t differing = 0;
    if (!same_type_) {
      for (int64_t i = 0; i < x_.width; ++i) differing += !(reference[i] == x[i]);
      return differing;
    }
    const size_t size = DTypeSize(x_.dtype);
    const char* a = Row(reference_, row);
    const char* b = Row(x_, row);
    if (std::memcmp(a, b, x_.width * size) == 0) return 0;
    for (int64_t i = 0; i < x_.width; ++i) {
      differing += std::memcmp(a + i * size, b + i * size, size) != 0;
    }
    return differing;
  }

  const Tensor& reference_;
  const Tensor& x_;
  ThreadPool& threads_;
  const bool same_type_;
  const int64_t rows_;
  int64_t grain_;
};

void SetPercentiles(const std::vector<float>& differences, ThreadPool& threads,
                    v1::TensorComparison* result) {
  const std::vector<double> found = Percentiles(differences, {0.5, 0.9, 0.99, 0.999}, threads);
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

double Cosine(const Sums& sums) {
  const double norms = std::sqrt(sums.reference) * std::sqrt(sums.x);
  if (norms > 0) return std::clamp(sums.product / norms, -1.0, 1.0);
  return sums.reference == sums.x ? 1 : 0;
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
  result.set_reference(std::string(reference_name));
  result.set_subject(std::string(name));
  for (int64_t size : x.shape) result.add_shape(size);
  const DType type = x.tensor.dtype, reference_type = reference.tensor.dtype;
  result.set_dtype(std::string(DTypeName(type)));
  result.set_reference_dtype(std::string(DTypeName(reference_type)));
  result.set_sha256(x.sha256.empty() ? TensorSha256(x.tensor) : x.sha256);
  result.set_reference_sha256(reference.sha256.empty() ? TensorSha256(reference.tensor)
                                                       : reference.sha256);
  if (x.shape != reference.shape) {
    result.set_incomparable(
        absl::StrCat("shape ", ShapeText(reference.shape), " against ", ShapeText(x.shape)));
    return result;
  }
  if (type != reference_type && !(IsFloat(type) && IsFloat(reference_type))) {
    result.set_incomparable(
        absl::StrCat("type ", DTypeName(reference_type), " against ", DTypeName(type)));
    return result;
  }

  Comparer comparer(reference.tensor, x.tensor, threads);
  const Partial found = comparer.Run();
  result.set_bitwise_equal(found.differing == 0);
  result.set_differing_elements(found.differing);
  if (found.first_row >= 0) {
    *result.mutable_first_differing_row() =
        name_row(found.first_row / x.tensor.rows, found.first_row % x.tensor.rows);
  }
  v1::TensorComparison::Nonfinite& nonfinite = *result.mutable_nonfinite();
  nonfinite.set_nan(found.nan[0]);
  nonfinite.set_infinity(found.infinity[0]);
  nonfinite.set_reference_nan(found.nan[1]);
  nonfinite.set_reference_infinity(found.infinity[1]);
  result.set_norm(std::sqrt(found.sums.x));
  result.set_reference_norm(std::sqrt(found.sums.reference));
  result.set_zero_reference(found.sums.reference == 0);
  if (found.nan != std::array<int64_t, 2>{} || found.infinity != std::array<int64_t, 2>{}) {
    SetNan(&result);
    return result;
  }
  const double distance = std::sqrt(found.sums.difference);
  result.set_relative_l2(result.zero_reference() ? result.norm()
                                                 : distance / result.reference_norm());
  result.set_max_abs(found.max_abs);
  result.set_max_u(found.max_abs / UnitAt(type, found.max_reference));
  result.set_cosine(Cosine(found.sums));
  result.mutable_abs_diff();
  if (found.max_abs > 0) SetPercentiles(comparer.Differences(), threads, &result);
  return result;
}

}  // namespace plumbline::drift
