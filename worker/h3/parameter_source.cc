#include "worker/h3/parameter_source.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace plumbline::h3 {

ParameterSource::ParameterSource(std::string model, std::string canonical_config,
                                 std::vector<ParameterSpec> parameters)
    : model_(std::move(model)),
      canonical_config_(std::move(canonical_config)),
      parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) index_by_name_[parameters_[i].name] = i;
}

const ParameterSpec* ParameterSource::Find(absl::string_view name) const {
  const auto found = index_by_name_.find(name);
  return found == index_by_name_.end() ? nullptr : &parameters_[found->second];
}

absl::StatusOr<std::string> ParameterSource::Digest() const {
  absl::MutexLock lock(&digest_mutex_);
  if (digest_.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(digest_, ComputeDigest());
  }
  return digest_;
}

absl::StatusOr<std::string> ParameterSource::ComputeDigest() const {
  std::vector<absl::StatusOr<std::string>> digests(parameters_.size(), std::string());
  std::atomic<size_t> next = 0;
  const auto hash_parameters = [&] {
    for (size_t i = next++; i < parameters_.size(); i = next++) {
      Sha256 values;
      const absl::Status hashed = Hash(parameters_[i], &values);
      digests[i] = hashed.ok() ? absl::StatusOr<std::string>(values.FinishHex()) : hashed;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back(hash_parameters);
  }
  hash_parameters();
  for (std::thread& thread : threads) thread.join();
  for (const absl::StatusOr<std::string>& digest : digests) {
    PLUMBLINE_RETURN_IF_ERROR(digest.status());
  }
  return DigestOfParameters(model_, canonical_config_, parameters_,
                            [&](const ParameterSpec& parameter) {
                              return *digests[static_cast<size_t>(&parameter - parameters_.data())];
                            });
}

std::string DigestOfParameters(absl::string_view model, absl::string_view canonical_config,
                               const std::vector<ParameterSpec>& parameters,
                               const std::function<std::string(const ParameterSpec&)>& sha256_of) {
  std::vector<const ParameterSpec*> sorted;
  for (const ParameterSpec& parameter : parameters) sorted.push_back(&parameter);
  std::sort(sorted.begin(), sorted.end(),
            [](const ParameterSpec* a, const ParameterSpec* b) { return a->name < b->name; });

  Sha256 lines;
  lines.Update(absl::StrCat("plumbline-", model, "-weights-1\n", canonical_config, "\n"));
  for (const ParameterSpec* parameter : sorted) {
    lines.Update(absl::StrCat(parameter->name, " ", DTypeName(parameter->dtype), " ",
                              absl::StrJoin(parameter->shape, "x"), " ", sha256_of(*parameter),
                              "\n"));
  }
  return lines.FinishHex();
}

}  // namespace plumbline::h3
