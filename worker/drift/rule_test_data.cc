#include "worker/drift/rule_test_data.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "worker/h3/inventory.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::drift {
namespace {

v1::TensorComparison Error(const TensorError& error) {
  v1::TensorComparison comparison;
  comparison.set_relative_l2(error.relative_l2);
  comparison.set_max_abs(error.max_abs);
  comparison.set_norm(1);
  comparison.set_reference_norm(1);
  return comparison;
}

}  // namespace

std::vector<ProviderErrors> PyTorchProviders() {
  const auto text = ReadFile("tests/golden/full_model_h200.json", 1 << 20);
  if (!text.ok()) return {};
  const nlohmann::json capture = nlohmann::json::parse(*text);
  std::vector<ProviderErrors> providers;
  for (const char* column :
       {"default", "sdpa-flash", "sdpa-efficient", "sdpa-math", "blas-cublaslt"}) {
    ProviderErrors provider;
    provider.name = absl::StrCat("provider/", column);
    v1::IdentityPart& part = *provider.identity.add_parts();
    part.set_name("composition");
    part.set_value(provider.name);
    provider.identity.set_sha256(Sha256Hex(provider.name));
    for (const auto& [name, tensor] : capture["tensors"].items()) {
      provider.errors[name] = {tensor[column][0], tensor[column][1]};
    }
    providers.push_back(std::move(provider));
  }
  return providers;
}

v1::Rule::Binds TestBinds() {
  v1::Rule::Binds binds;
  binds.set_checkpoint_sha256(Sha256Hex("checkpoint"));
  binds.set_inputs_sha256(Sha256Hex("inputs"));
  binds.set_device_class("sm_90a NVIDIA H200 132");
  return binds;
}

v1::FullModelReport PyTorchReport(const v1::Rule& rule) {
  const std::vector<ProviderErrors> providers = PyTorchProviders();
  v1::FullModelReport report;
  report.set_checkpoint_sha256(rule.binds().checkpoint_sha256());
  report.set_inputs_sha256(rule.binds().inputs_sha256());
  for (const v1::RuleProvider& provider : rule.providers()) *report.add_providers() = provider;
  report.set_blocks(50);
  const h3::TransformerConfig config = h3::ReleasedConfig();
  int order = 0;
  for (const h3::InventoryTensor& entry :
       h3::MakeInventory(config, h3::BuildTransformerGraph(config), {925, 291, 560, 74, 3})) {
    v1::FullModelTensor& tensor = *report.add_tensors();
    tensor.set_name(entry.name);
    tensor.set_order(order++);
    for (const ProviderErrors& provider : providers) {
      *tensor.add_provider_errors() = Error(provider.errors.at(entry.name));
    }
    *tensor.mutable_candidate_error() = tensor.provider_errors(0);
    tensor.mutable_candidate_drift()->set_bitwise_equal(true);
  }
  v1::ImplementationTrace::Group& group = *report.mutable_trace()->add_groups();
  group.set_requested("candidate");
  group.set_actual("candidate/gate_up_swiglu");
  group.add_nodes("block.*/ffn_gate_up");
  return report;
}

std::vector<std::string> NamesOf(const v1::Rule& rule) {
  std::vector<std::string> names;
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) names.push_back(tensor.name());
  return names;
}

}  // namespace plumbline::drift
