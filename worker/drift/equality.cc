#include "worker/drift/equality.h"

#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/drift/tensor_rows.h"

namespace plumbline::drift {
namespace {

void Conclude(int64_t differing, absl::string_view variation, v1::EqualityCheck* check) {
  check->set_differing_elements(differing);
  if (differing > 0) {
    check->set_result(v1::EQUALITY_DIFFERENT);
    check->set_variation(std::string(variation));
    return;
  }
  check->set_result(v1::EQUALITY_EQUAL);
  const absl::string_view before = check->variation();
  if (before.empty()) {
    check->set_variation(std::string(variation));
  } else if (!absl::StrContains(before, variation)) {
    check->set_variation(absl::StrCat(before, ", ", variation));
  }
}

// One value of a tensor in a device's memory, widened. `row` counts those of all batch items.
absl::StatusOr<double> ValueAt(Device& device, const Tensor& tensor, int64_t row, int64_t column) {
  Tensor one = Tensor::Dense(nullptr, tensor.dtype, 1, 1, 1);
  one.data = const_cast<char*>(RowBytes(tensor, row / tensor.rows, row % tensor.rows)) +
             column * static_cast<int64_t>(DTypeSize(tensor.dtype));
  char bytes[sizeof(double)] = {};
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToHost(one, bytes));
  return WidenElement(tensor.dtype, bytes, 0);
}

}  // namespace

void AddExecution(const Tensor& first, const Tensor& other, absl::string_view variation,
                  const RowNamer& name_row, v1::EqualityCheck* check) {
  check->set_executions(check->executions() + 1);
  // The first difference stays; equal executions before it are then of no interest.
  if (check->result() == v1::EQUALITY_DIFFERENT) return;
  const size_t size = DTypeSize(first.dtype);
  int64_t differing = 0;
  for (int64_t item = 0; item < first.batch; ++item) {
    for (int64_t row = 0; row < first.rows; ++row) {
      const char* a = RowBytes(first, item, row);
      const char* b = RowBytes(other, item, row);
      if (std::memcmp(a, b, first.width * size) == 0) continue;
      for (int64_t column = 0; column < first.width; ++column) {
        if (std::memcmp(a + column * size, b + column * size, size) == 0) continue;
        if (differing++ > 0) continue;
        *check->mutable_first_differing_row() = name_row(item, row);
        check->set_first_differing_column(column);
        check->set_value(WidenElement(first.dtype, a, column));
        check->set_other_value(WidenElement(other.dtype, b, column));
      }
    }
  }
  Conclude(differing, variation, check);
}

absl::Status AddExecutionOnDevice(Device& device, const Tensor& first, const Tensor& other,
                                  absl::string_view variation, const RowNamer& name_row,
                                  v1::EqualityCheck* check) {
  if (device.kind() == DeviceKind::kCpu) {
    AddExecution(first, other, variation, name_row, check);
    return absl::OkStatus();
  }
  check->set_executions(check->executions() + 1);
  if (check->result() == v1::EQUALITY_DIFFERENT) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const TensorDifference found, device.Difference(first, other, {}));
  if (found.differing > 0) {
    const int64_t row = found.first / first.width;
    const int64_t column = found.first % first.width;
    *check->mutable_first_differing_row() = name_row(row / first.rows, row % first.rows);
    check->set_first_differing_column(column);
    PLUMBLINE_ASSIGN_OR_RETURN(const double value, ValueAt(device, first, row, column));
    PLUMBLINE_ASSIGN_OR_RETURN(const double other_value, ValueAt(device, other, row, column));
    check->set_value(value);
    check->set_other_value(other_value);
  }
  Conclude(found.differing, variation, check);
  return absl::OkStatus();
}

}  // namespace plumbline::drift
