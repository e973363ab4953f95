#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_GEMM_PATH_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_GEMM_PATH_H_

namespace plumbline::provider {

// The two ways of a library to one matrix product; they differ in the order of the float32 sum.
enum class GemmPath {
  kWholeSum,  // one call over the whole sum: the place of cuBLAS
  kSplitSum,  // split-K, as cublasLt's heuristic picks it where results are few and sums long: up
              // to four slices of the sum, each a call of its own, added in order
};

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_GEMM_PATH_H_
