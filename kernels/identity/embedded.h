#ifndef PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_H_
#define PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_H_

#include "kernels/identity/kernel_identity.h"

namespace plumbline {

// The identity of the kernels that this program was built from. Any thread may call.
//
// The library depends on all kernels and on all of worker/h3 for their sources' digests; they
// therefore take a KernelIdentity as an argument, and only programs and tests call this.
const KernelIdentity& EmbeddedKernelIdentity();

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_H_
