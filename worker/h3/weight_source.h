#ifndef PLUMBLINE_WORKER_H3_WEIGHT_SOURCE_H_
#define PLUMBLINE_WORKER_H3_WEIGHT_SOURCE_H_

#include <functional>
#include <string>
#include <vector>

#include "worker/h3/config.h"
#include "worker/h3/parameter_source.h"

namespace plumbline::h3 {

// The transformer parameters of one checkpoint, as TransformerParameters orders them.
class WeightSource : public ParameterSource {
 public:
  const TransformerConfig& config() const { return config_; }

 protected:
  // `config` must be valid.
  explicit WeightSource(const TransformerConfig& config)
      : ParameterSource("transformer", CanonicalConfigJson(config), TransformerParameters(config)),
        config_(config) {}

 private:
  const TransformerConfig config_;
};

// WeightSource::Digest() from the SHA-256 of each parameter's bytes, hex, as `sha256_of` gives it.
inline std::string DigestOfParameters(
    const TransformerConfig& config, const std::vector<ParameterSpec>& parameters,
    const std::function<std::string(const ParameterSpec&)>& sha256_of) {
  return DigestOfParameters("transformer", CanonicalConfigJson(config), parameters, sha256_of);
}

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_WEIGHT_SOURCE_H_
