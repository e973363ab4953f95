#include "common/metrics.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace plumbline {

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {}
Metrics::~Metrics() = default;

std::string Metrics::Serialize() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace plumbline
