#include "kernels/provider/cuda/gemm.h"

#include <algorithm>
#include <memory>

#include "common/status.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/provider/cuda/cublas.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::Operand;
using cuda::SummedAxis;

constexpr int kHopperMajor = 9;
constexpr size_t kHopperWorkspaceBytes = size_t{32} << 20;
constexpr size_t kWorkspaceBytes = (size_t{8} << 20) + (size_t{128} << 10);
constexpr size_t kLtWorkspaceBytes = size_t{1} << 20;
constexpr uint32_t kMostAlignment = 256;  // that PyTorch tells cublasLt of

// A column-major matrix as cuBLAS takes it.
struct Matrix {
  const void* data;
  cublasOperation_t operation;
  int64_t stride;  // between columns
};

// C^T(n, m) = a(n, k) b(k, m), column-major.
struct Gemm {
  int64_t n, m, k;
  Matrix a, b;
  void* c;
  int64_t c_stride;
  cudaDataType_t type;

  Gemm(const Operand& left, const Operand& right, const Tensor& output)
      : n(right.Extent()),
        m(left.Extent()),
        k(left.SummedExtent()),
        a(MatrixOf(right, SummedAxis::kWidth)),
        b(MatrixOf(left, SummedAxis::kRows)),
        c(output.data),
        c_stride(output.row_stride),
        type(TypeOf(output.dtype)) {
    // cuBLAS checks strides that it does not use.
    if (m <= 1) c_stride = std::max<int64_t>(n, 1);
    if (a.operation == CUBLAS_OP_T ? n <= 1 : k <= 1) {
      a.stride = std::max<int64_t>(a.operation == CUBLAS_OP_T ? k : n, 1);
    }
    if (b.operation == CUBLAS_OP_T ? k <= 1 : m <= 1) {
      b.stride = std::max<int64_t>(b.operation == CUBLAS_OP_T ? m : k, 1);
    }
  }

  static cudaDataType_t TypeOf(DType dtype) {
    switch (dtype) {
      case DType::kBF16:
        return CUDA_R_16BF;
      case DType::kF16:
        return CUDA_R_16F;
      default:
        return CUDA_R_32F;
    }
  }

  // Row-major memory is the transpose of column-major memory.
  static Matrix MatrixOf(const Operand& operand, SummedAxis transposed) {
    return {operand.tensor.data, operand.summed == transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
            operand.tensor.row_stride};
  }
};

uint32_t AlignmentOf(const void* data) {
  uint32_t alignment = kMostAlignment;
  while (reinterpret_cast<uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

// Destroys an object of cublasLt's.
template <typename T>
class Descriptor {
 public:
  explicit Descriptor(cublasStatus_t (*destroy)(T)) : destroy_(destroy) {}
  ~Descriptor() {
    if (object_ != nullptr) destroy_(object_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  T* Out() { return &object_; }
  T get() const { return object_; }

 private:
  cublasStatus_t (*const destroy_)(T);
  T object_ = nullptr;
};

// One product through cublasLt.
class LtProduct {
 public:
  explicit LtProduct(const Cublas& cublas)
      : cublas_(cublas),
        product_(cublas.cublasLtMatmulDescDestroy),
        a_(cublas.cublasLtMatrixLayoutDestroy),
        b_(cublas.cublasLtMatrixLayoutDestroy),
        c_(cublas.cublasLtMatrixLayoutDestroy),
        preference_(cublas.cublasLtMatmulPreferenceDestroy) {}

  absl::Status Describe(const Gemm& gemm, const void* bias) {
    PLUMBLINE_RETURN_IF_ERROR(CublasStatus(
        cublas_.cublasLtMatmulDescCreate(product_.Out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "describing a product"));
    PLUMBLINE_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSA, gemm.a.operation));
    PLUMBLINE_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSB, gemm.b.operation));
    if (bias != nullptr) {
      PLUMBLINE_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
      PLUMBLINE_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    PLUMBLINE_RETURN_IF_ERROR(Layout(gemm.type, gemm.n, gemm.k, gemm.a, &a_));
    PLUMBLINE_RETURN_IF_ERROR(Layout(gemm.type, gemm.k, gemm.m, gemm.b, &b_));
    PLUMBLINE_RETURN_IF_ERROR(
        Layout(gemm.type, gemm.n, gemm.m, {nullptr, CUBLAS_OP_N, gemm.c_stride}, &c_));
    PLUMBLINE_RETURN_IF_ERROR(
        CublasStatus(cublas_.cublasLtMatmulPreferenceCreate(preference_.Out()), "a preference"));
    PLUMBLINE_RETURN_IF_ERROR(Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kLtWorkspaceBytes));
    PLUMBLINE_RETURN_IF_ERROR(
        Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(gemm.a.data)));
    PLUMBLINE_RETURN_IF_ERROR(
        Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(gemm.b.data)));
    PLUMBLINE_RETURN_IF_ERROR(
        Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(gemm.c)));
    // PyTorch gives the bias's for the result's.
    if (bias == nullptr) return absl::OkStatus();
    return Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(bias));
  }

  // Sets *done to whether cublasLt had a way.
  absl::Status Run(const CublasHandle& handle, cudaStream_t stream, const Gemm& gemm,
                   void* workspace, bool* done) const {
    cublasLtMatmulHeuristicResult_t first = {};
    int found = 0;
    const cublasStatus_t asked = cublas_.cublasLtMatmulAlgoGetHeuristic(
        handle.lt(), product_.get(), a_.get(), b_.get(), c_.get(), c_.get(), preference_.get(), 1,
        &first, &found);
    *done = asked == CUBLAS_STATUS_SUCCESS && found > 0;
    if (!*done) return absl::OkStatus();
    const float alpha = 1;
    const float beta = 0;
    return CublasStatus(
        cublas_.cublasLtMatmul(handle.lt(), product_.get(), &alpha, gemm.a.data, a_.get(),
                               gemm.b.data, b_.get(), &beta, gemm.c, c_.get(), gemm.c, c_.get(),
                               &first.algo, workspace, kLtWorkspaceBytes, stream),
        "cublasLtMatmul");
  }

 private:
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return CublasStatus(
        cublas_.cublasLtMatmulDescSetAttribute(product_.get(), attribute, &value, sizeof(value)),
        "describing a product");
  }

  template <typename T>
  absl::Status Prefer(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    return CublasStatus(cublas_.cublasLtMatmulPreferenceSetAttribute(preference_.get(), attribute,
                                                                     &value, sizeof(value)),
                        "a preference");
  }

  // Of op(matrix), rows by columns.
  absl::Status Layout(cudaDataType_t type, int64_t rows, int64_t columns, const Matrix& matrix,
                      Descriptor<cublasLtMatrixLayout_t>* layout) {
    if (matrix.operation == CUBLAS_OP_T) std::swap(rows, columns);
    return CublasStatus(
        cublas_.cublasLtMatrixLayoutCreate(layout->Out(), type, static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), matrix.stride),
        "a layout");
  }

  const Cublas& cublas_;
  Descriptor<cublasLtMatmulDesc_t> product_;
  Descriptor<cublasLtMatrixLayout_t> a_, b_, c_;
  Descriptor<cublasLtMatmulPreference_t> preference_;
};

// C^T = a b + beta C^T.
absl::Status PlainProduct(const Cublas& cublas, const CublasHandle& handle, const Gemm& gemm,
                          float beta) {
  const float alpha = 1;
  const int n = static_cast<int>(gemm.n);
  const int m = static_cast<int>(gemm.m);
  const int k = static_cast<int>(gemm.k);
  const int a_stride = static_cast<int>(gemm.a.stride);
  const int b_stride = static_cast<int>(gemm.b.stride);
  const int c_stride = static_cast<int>(gemm.c_stride);
  PLUMBLINE_RETURN_IF_ERROR(
      CublasStatus(cublas.cublasSetMathMode(handle.get(), CUBLAS_DEFAULT_MATH), "math mode"));
  if (gemm.type == CUDA_R_32F) {
    return CublasStatus(
        cublas.cublasSgemm_v2(handle.get(), gemm.a.operation, gemm.b.operation, n, m, k, &alpha,
                              static_cast<const float*>(gemm.a.data), a_stride,
                              static_cast<const float*>(gemm.b.data), b_stride, &beta,
                              static_cast<float*>(gemm.c), c_stride),
        "cublasSgemm");
  }
  return CublasStatus(cublas.cublasGemmEx(handle.get(), gemm.a.operation, gemm.b.operation, n, m, k,
                                          &alpha, gemm.a.data, gemm.type, a_stride, gemm.b.data,
                                          gemm.type, b_stride, &beta, gemm.c, gemm.type, c_stride,
                                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP),
                      "cublasGemmEx");
}

// The bias in every row of the result.
absl::Status CopyBias(cudaStream_t stream, const Tensor& bias, const Tensor& output) {
  Tensor repeated = bias;
  repeated.rows = output.rows;
  repeated.row_stride = 0;
  return ConvertOnCuda(stream, repeated, output);
}

}  // namespace

size_t GemmWorkspaceBytes() {
  int device = 0;
  int major = 0;
  if (cudaGetDevice(&device) == cudaSuccess) {
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  }
  return major == kHopperMajor ? kHopperWorkspaceBytes : kWorkspaceBytes;
}

absl::Status CheckGemm() { return Cublas::Get().status(); }

absl::Status Multiply(cudaStream_t stream, GemmPath path, const Operand& left, const Operand& right,
                      const Tensor& bias, const Tensor& output, absl::Span<uint8_t> workspace) {
  const Gemm gemm(left, right, output);
  if (gemm.n == 0 || gemm.m == 0) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const Cublas* const cublas, Cublas::Get());
  PLUMBLINE_ASSIGN_OR_RETURN(const CublasHandle handle, CublasHandle::Lock(*cublas));
  PLUMBLINE_RETURN_IF_ERROR(
      CublasStatus(cublas->cublasSetStream_v2(handle.get(), stream), "setting the stream"));
  PLUMBLINE_RETURN_IF_ERROR(
      CublasStatus(cublas->cublasSetWorkspace_v2(handle.get(), workspace.data(), workspace.size()),
                   "setting the workspace"));
  const bool has_bias = !bias.IsNull();
  const bool lt_takes_bias = gemm.n > 1 && gemm.m > 1 && gemm.k > 1;
  if (has_bias ? lt_takes_bias : path == GemmPath::kCublasLt) {
    LtProduct product(*cublas);
    bool done = false;
    PLUMBLINE_RETURN_IF_ERROR(product.Describe(gemm, bias.data));
    PLUMBLINE_RETURN_IF_ERROR(product.Run(handle, stream, gemm, workspace.data(), &done));
    if (done) return absl::OkStatus();
  }
  if (has_bias) PLUMBLINE_RETURN_IF_ERROR(CopyBias(stream, bias, output));
  return PlainProduct(*cublas, handle, gemm, has_bias ? 1.0f : 0.0f);
}

}  // namespace plumbline::provider_cuda
