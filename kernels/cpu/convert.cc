#include "kernels/cpu/convert.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

// About this many values make a chunk worth a thread.
constexpr int64_t kChunkValues = 1 << 15;

void ConvertValue(bfloat16 from, float& to) { to = WidenBf16(from); }
void ConvertValue(bfloat16 from, double& to) { to = WidenBf16(from); }
void ConvertValue(float from, bfloat16& to) { to = RoundToBf16(from); }
void ConvertValue(float from, double& to) { to = from; }
void ConvertValue(double from, bfloat16& to) { to = RoundToBf16(from); }
void ConvertValue(double from, float& to) { to = static_cast<float>(from); }

using RowConverter = void (*)(const void* from, void* to, int64_t width);

template <typename From, typename To>
void ConvertRow(const void* from, void* to, int64_t width) {
  const From* source = static_cast<const From*>(from);
  To* destination = static_cast<To*>(to);
  for (int64_t i = 0; i < width; ++i) ConvertValue(source[i], destination[i]);
}

template <size_t kBytes>
void CopyRow(const void* from, void* to, int64_t width) {
  std::memcpy(to, from, static_cast<size_t>(width) * kBytes);
}

// Null where there is no such conversion.
RowConverter FindConverter(DType from, DType to) {
  if (from == to) {
    switch (DTypeSize(from)) {
      case 8:
        return CopyRow<8>;
      case 4:
        return CopyRow<4>;
      case 2:
        return CopyRow<2>;
      default:
        return CopyRow<1>;
    }
  }
  if (from == DType::kBF16 && to == DType::kF32) return ConvertRow<bfloat16, float>;
  if (from == DType::kBF16 && to == DType::kF64) return ConvertRow<bfloat16, double>;
  if (from == DType::kF32 && to == DType::kBF16) return ConvertRow<float, bfloat16>;
  if (from == DType::kF32 && to == DType::kF64) return ConvertRow<float, double>;
  if (from == DType::kF64 && to == DType::kBF16) return ConvertRow<double, bfloat16>;
  if (from == DType::kF64 && to == DType::kF32) return ConvertRow<double, float>;
  return nullptr;
}

const void* RowAddress(const Tensor& tensor, int64_t row, int64_t item) {
  const int64_t offset = item * tensor.batch_stride + row * tensor.row_stride;
  return static_cast<const char*>(tensor.data) +
         offset * static_cast<int64_t>(DTypeSize(tensor.dtype));
}

}  // namespace

absl::Status ConvertTensor(const Tensor& from, const Tensor& to, ThreadPool& threads) {
  const bool same_batch = from.batch == to.batch || from.batch == 1;
  if (!same_batch || from.rows != to.rows || from.width != to.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("conversion of (", from.batch, ", ", from.rows, ", ", from.width, ") to (",
                     to.batch, ", ", to.rows, ", ", to.width, "): the shapes must be equal"));
  }
  const RowConverter convert = FindConverter(from.dtype, to.dtype);
  if (convert == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("conversion of ", DTypeName(from.dtype), " to ", DTypeName(to.dtype),
                     ": BF16, F32 and F64 convert to one another, any other type only to itself"));
  }
  const int64_t grain = std::max<int64_t>(1, kChunkValues / std::max<int64_t>(1, to.width));
  threads.ParallelFor(0, to.batch * to.rows, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t item = i / to.rows;
      const int64_t row = i % to.rows;
      convert(RowAddress(from, row, from.batch == 1 ? 0 : item),
              const_cast<void*>(RowAddress(to, row, item)), to.width);
    }
  });
  return absl::OkStatus();
}

}  // namespace plumbline
