#include "worker/h3/weight_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace plumbline::h3 {

WeightSource::WeightSource(const TransformerConfig& config)
    : config_(config), parameters_(TransformerParameters(config)) {
  for (size_t i = 0; i < parameters_.size(); ++i) index_by_name_[parameters_[i].name] = i;
}

const ParameterSpec* WeightSource::Find(absl::string_view name) const {
  const auto found = index_by_name_.find(name);
  return found == index_by_name_.end() ? nullptr : &parameters_[found->second];
}

absl::StatusOr<std::string> WeightSource::Digest() const {
  absl::MutexLock lock(&digest_mutex_);
  if (digest_.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(digest_, ComputeDigest());
  }
  return digest_;
}

absl::StatusOr<std::string> WeightSource::ComputeDigest() const {
  absl::Status status;
  std::string digest =
      DigestOfParameters(config_, parameters_, [&](const ParameterSpec& parameter) -> std::string {
        if (!status.ok()) return "";
        Sha256 values;
        status = Hash(parameter, &values);
        return values.FinishHex();
      });
  PLUMBLINE_RETURN_IF_ERROR(status);
  return digest;
}

std::string DigestOfParameters(const TransformerConfig& config,
                               const std::vector<ParameterSpec>& parameters,
                               const std::function<std::string(const ParameterSpec&)>& sha256_of) {
  std::vector<const ParameterSpec*> sorted;
  for (const ParameterSpec& parameter : parameters) sorted.push_back(&parameter);
  std::sort(sorted.begin(), sorted.end(),
            [](const ParameterSpec* a, const ParameterSpec* b) { return a->name < b->name; });

  Sha256 lines;
  lines.Update(
      absl::StrCat("plumbline-transformer-weights-1\n", CanonicalConfigJson(config), "\n"));
  for (const ParameterSpec* parameter : sorted) {
    lines.Update(absl::StrCat(parameter->name, " ", DTypeName(parameter->dtype), " ",
                              absl::StrJoin(parameter->shape, "x"), " ", sha256_of(*parameter),
                              "\n"));
  }
  return lines.FinishHex();
}

}  // namespace plumbline::h3
