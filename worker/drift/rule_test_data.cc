#include "worker/drift/rule_test_data.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"

namespace plumbline::drift {

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

std::vector<std::string> NamesOf(const v1::Rule& rule) {
  std::vector<std::string> names;
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) names.push_back(tensor.name());
  return names;
}

}  // namespace plumbline::drift
