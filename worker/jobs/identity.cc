#include "worker/jobs/identity.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/h3/numerical_identity.h"

namespace plumbline::jobs {

absl::StatusOr<v1::NumericalIdentity> IdentityOf(absl::string_view composition,
                                                 absl::string_view checkpoint,
                                                 const JobEnvironment& environment) {
  h3::NumericalFacts facts;
  facts.composition = std::string(composition);
  // The library is the provider's; golden and candidate compute all by themselves.
  if (absl::StrContains(composition, "provider")) facts.libraries = environment.libraries;
  for (absl::string_view part : absl::StrSplit(composition, '+')) {
    part = part.substr(0, part.find(':'));
    if (!absl::ConsumePrefix(&part, "plugin/")) continue;
    const auto found = environment.plugins.find(std::string(part));
    // An identity without the plug-in's digest would make two plug-ins one.
    facts.plugins[std::string(part)] = found == environment.plugins.end() ? "" : found->second;
  }
  facts.device_class = environment.context.device->DeviceClass();
  facts.checkpoint = std::string(checkpoint);
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::NumericalIdentity identity,
                             h3::MakeNumericalIdentity(*environment.kernel_identity, facts));
  v1::NumericalIdentity message;
  message.set_sha256(identity.sha256);
  for (const auto& [name, value] : identity.parts) {
    v1::IdentityPart& part = *message.add_parts();
    part.set_name(name);
    part.set_value(value);
  }
  return message;
}

}  // namespace plumbline::jobs
