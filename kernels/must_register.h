// Filling a registry with what is built in.
#ifndef PLUMBLINE_KERNELS_MUST_REGISTER_H_
#define PLUMBLINE_KERNELS_MUST_REGISTER_H_

#include "kernels/registry.h"

namespace plumbline {

// As the registry's own functions, for the registrations of builtin.h alone: their names are fixed
// in the source, so one that is there already is a programmer's mistake, and a kernel that is
// silently left out would be measured as another one. It ends the program with the registry's
// message. What a user names (a plug-in) goes through the registry's own functions.
void MustRegister(Registry& registry, OperationRegistration registration);
void MustRegister(Registry& registry, FusedRegistration registration);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_MUST_REGISTER_H_
