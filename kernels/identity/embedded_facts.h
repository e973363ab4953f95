#ifndef PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_FACTS_H_
#define PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_FACTS_H_

namespace plumbline {

// product.sources and product.flags, as the build wrote them (kernel_facts.bzl).
extern const char kEmbeddedSources[];
extern const char kEmbeddedFlags[];

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_IDENTITY_EMBEDDED_FACTS_H_
