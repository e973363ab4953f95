#include "kernels/provider/cpu/blas.h"

#include <openblas-pthread/cblas.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

// Exported by OpenBLAS's dynamic-architecture builds but declared in no header of theirs.
extern "C" {
void gotoblas_dynamic_init(void);
void gotoblas_dynamic_quit(void);
}

namespace plumbline::provider {
namespace {

// OpenBLAS chooses its kernels in a constructor. Linked statically it may run after ours, linked as
// a shared library it has run before any code of the program (even .preinit_array is too early: the
// environment is not there yet). So the choice is made once more, which is right in either order.
bool SelectKernels() {
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    setenv("OPENBLAS_CORETYPE", "Haswell", /*overwrite=*/0);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
  }
  return true;
}
const bool kKernelsSelected = SelectKernels();

// Not done with the above: in a static program the library's threads may not exist by then.
bool SetOneThread() {
  openblas_set_num_threads(1);
  return true;
}
void EnsureOneThread() {
  static const bool done = SetOneThread();
  static_cast<void>(done);
}

}  // namespace

BlasIdentity GetBlasIdentity() {
  static_cast<void>(kKernelsSelected);
  EnsureOneThread();
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": what follows the version is how it was built and
  // the machine's processor.
  const std::vector<std::string> words = absl::StrSplit(openblas_get_config(), ' ');
  BlasIdentity identity;
  identity.version = words.size() < 2 ? words[0] : absl::StrCat(words[0], " ", words[1]);
  identity.core_type = openblas_get_corename();
  identity.threads = openblas_get_num_threads();
  return identity;
}

void Sgemm(int64_t m, int64_t n, int64_t k, const BlasMatrix& a, const BlasMatrix& b,
           bool accumulate, float* c, int64_t c_row_stride) {
  EnsureOneThread();
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<blasint>(m),
              static_cast<blasint>(n), static_cast<blasint>(k), 1.0f, a.values,
              static_cast<blasint>(a.row_stride), b.values, static_cast<blasint>(b.row_stride),
              accumulate ? 1.0f : 0.0f, c, static_cast<blasint>(c_row_stride));
}

}  // namespace plumbline::provider
