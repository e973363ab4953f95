// OpenBLAS, as the provider uses it.
//
// Two things that OpenBLAS leaves to the machine decide its bits, so both are fixed here.
//  - Its kernels. It picks them by the processor's name, and those that Debian's 0.3.21 picks on
//    AVX-512 processors do not give the bits of the AVX2 ones, some of them not even right values.
//    Before main() the AVX2 ("Haswell") kernels are selected, unless OPENBLAS_CORETYPE is set.
//  - Its threads. How it shares a product among them changes which edge kernel computes a value. It
//    therefore runs on the calling thread alone; the callers share the work out in tiles whose
//    sizes depend on nothing but the shapes.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_BLAS_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_BLAS_H_

#include <cstdint>
#include <string>

namespace plumbline::provider {

// What a numerical identity has to say about the library.
struct BlasIdentity {
  std::string version;    // as the library gives it, e.g. "OpenBLAS 0.3.21"
  std::string core_type;  // whose kernels run, e.g. "Haswell"
  int threads = 1;        // those that share one product inside the library
};
BlasIdentity GetBlasIdentity();

// A float32 matrix in memory with contiguous rows `row_stride` apart. `transposed` says that the
// memory holds the transpose of the operand.
struct BlasMatrix {
  const float* values = nullptr;
  int64_t row_stride = 0;
  bool transposed = false;
};

// c(m, n) = a(m, k) b(k, n) + (accumulate ? c : 0), all float32. c's rows are `c_row_stride` apart.
// Any thread may call, several at once; none of the sizes is zero.
void Sgemm(int64_t m, int64_t n, int64_t k, const BlasMatrix& a, const BlasMatrix& b,
           bool accumulate, float* c, int64_t c_row_stride);

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_BLAS_H_
