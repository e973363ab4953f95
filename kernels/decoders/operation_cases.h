// The decoders' operations of one implementation on one device, for tests: operation_cases.cc has
// the cases, and who links them instantiates DecoderOperationsTest.
#ifndef PLUMBLINE_KERNELS_DECODERS_OPERATION_CASES_H_
#define PLUMBLINE_KERNELS_DECODERS_OPERATION_CASES_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/device.h"
#include "kernels/registry.h"

namespace plumbline {

// Values with gaps between rows and items, so that strides matter.
class Values {
 public:
  Values(int64_t batch, int64_t rows, int64_t width, int64_t gap = 0)
      : storage_(static_cast<size_t>(batch * (rows + gap) * (width + gap)), 1e30f) {
    view_ = Tensor::Dense(storage_.data(), DType::kF32, batch, rows, width);
    view_.row_stride = width + gap;
    view_.batch_stride = (rows + gap) * (width + gap);
  }
  Values(const Values&) = delete;

  void Fill(std::mt19937* random, double scale = 1) {
    std::uniform_real_distribution<double> distribution(-scale, scale);
    Each([&](float& value) { value = static_cast<float>(distribution(*random)); });
  }
  void Each(const std::function<void(float&)>& visit) {
    for (int64_t item = 0; item < view_.batch; ++item) {
      for (int64_t row = 0; row < view_.rows; ++row) {
        for (int64_t i = 0; i < view_.width; ++i) visit(view_.Row<float>(row, item)[i]);
      }
    }
  }
  const Tensor& view() const { return view_; }
  double At(int64_t item, int64_t row, int64_t column) const {
    return view_.Row<float>(row, item)[column];
  }

 private:
  std::vector<float> storage_;
  Tensor view_;
};

// The expected value at (item, row, column).
using ExpectedValue = std::function<double(int64_t item, int64_t row, int64_t column)>;

// What is tested.
struct DecoderOperationsSubject {
  const char* implementation;
  // Null where there is none: the cases skip themselves, saying `no_device`.
  std::shared_ptr<Device> (*device)();
  const char* no_device;
  double tolerance;  // of a value v, times 1 + |v|
  // Whether a value's bytes do not depend on what else is computed.
  bool is_invariant;
};

class DecoderOperationsTest : public testing::TestWithParam<DecoderOperationsSubject> {
 protected:
  DecoderOperationsTest();

  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << GetParam().no_device;
  }

  const Operation& Find(OpKind op) const {
    return *registry_.Find(GetParam().implementation, op, "", device_->kind()).value()->operation;
  }

  // Runs the operation on the device; the call's tensors are the host's.
  void Run(OpKind op, const ForwardCall& call);

  // Runs the operation and holds every value to what is expected.
  void Expect(OpKind op, const std::vector<const Values*>& inputs,
              const std::vector<const Values*>& parameters, const Attributes& attributes,
              Values* output, const ExpectedValue& expected);

  std::mt19937 random_;
  const Registry registry_ = MakeBuiltinRegistry();
  const std::shared_ptr<Device> device_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_DECODERS_OPERATION_CASES_H_
