// What plug-ins declare, and what the process says that loads one: the object can write both.
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "kernels/plugin/library.h"
#include "kernels/plugin/nodes.h"
#include "kernels/plugin/registration.h"
#include "kernels/registry.h"
#include "tests/fuzz/input.h"
#include "worker/plugin/probe.h"

namespace plumbline {
namespace {

plumbline_status Call(const plumbline_call*) { return plumbline_ok(); }
size_t Bytes(const plumbline_call*) { return 0; }
size_t Workspace(const plumbline_call*, int32_t) { return 0; }

// Declarations whose fields are right but where the input says something else: so most of them
// reach the checks behind the first.
class Declaration {
 public:
  explicit Declaration(fuzz::Input* input) : input_(*input) {
    plugin_.abi_version = Or<uint32_t>(PLUMBLINE_PLUGIN_ABI_VERSION);
    plugin_.struct_bytes = Or<uint32_t>(sizeof(plumbline_plugin));
    plugin_.name = TextOr("name");
    plugin_.owner = TextOr("owner");
    plugin_.identity = TextOr("identity");
    kernels_.resize(input_.Byte() % 4);
    for (plumbline_kernel& kernel : kernels_) Fill(&kernel);
    // As many as there are, or what nobody may believe.
    plugin_.num_kernels = static_cast<int32_t>(kernels_.size());
    if (Says()) plugin_.num_kernels = input_.Byte() % 2 == 0 ? -input_.Byte() : 65 + input_.Byte();
    plugin_.kernels = Says() ? nullptr : kernels_.data();
  }

  const plumbline_plugin* get() const { return &plugin_; }

 private:
  bool Says() { return input_.Byte() % 8 == 7; }

  template <typename T>
  T Or(T usual) {
    return Says() ? input_.Number<T>() : usual;
  }

  const char* TextOr(const char* usual) {
    if (!Says()) return usual;
    if (Says()) return nullptr;
    return texts_.emplace_back(input_.Text()).c_str();
  }

  void Fill(plumbline_kernel* kernel) {
    kernel->struct_bytes = Or<uint32_t>(sizeof(plumbline_kernel));
    const size_t first = input_.Byte();
    std::array<const char*, 8>& nodes = nodes_.emplace_back();
    const auto known = plugin::PluginNodes();
    kernel->num_nodes = 1 + input_.Byte() % 8;
    for (int i = 0; i < kernel->num_nodes; ++i) {
      nodes[i] = TextOr(known[(first + i) % known.size()].name.data());
    }
    kernel->nodes = Says() ? nullptr : nodes.data();
    if (Says()) kernel->num_nodes = input_.Byte() % 2 == 0 ? -input_.Byte() : 9 + input_.Byte();
    kernel->device = Or<int32_t>(PLUMBLINE_CPU);
    kernel->compute_capability = Or<int32_t>(0);
    kernel->type = Or<int32_t>(PLUMBLINE_BF16);
    kernel->status = Or<int32_t>(PLUMBLINE_BOUND);
    kernel->promises = Or<uint32_t>(PLUMBLINE_REPEATABLE);
    plumbline_constraints& limits = kernel->constraints;
    for (int64_t* const limit :
         {&limits.rows_multiple_of, &limits.max_rows, &limits.width_multiple_of, &limits.max_width,
          &limits.head_width, &limits.alignment_bytes}) {
      *limit = Or<int64_t>(0);
    }
    kernel->check = Says() ? Call : nullptr;
    kernel->saved_bytes = Says() ? Bytes : nullptr;
    kernel->workspace_bytes = Says() ? Workspace : nullptr;
    kernel->forward = Says() ? nullptr : Call;
    kernel->backward = Says() ? Call : nullptr;
  }

  fuzz::Input& input_;
  plumbline_plugin plugin_ = {};
  std::vector<plumbline_kernel> kernels_;
  std::deque<std::array<const char*, 8>> nodes_;
  std::deque<std::string> texts_;
};

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

void JudgeAnswer(fuzz::Input* input) {
  worker::ProbeOutcome outcome;
  outcome.ended = input->Byte() % 8 != 7;
  outcome.wait_status = input->Number<uint16_t>();
  outcome.answer = std::string(input->Rest());
  const absl::Status status = worker::JudgeProbe(outcome, absl::Seconds(1));
  FUZZ_REQUIRE(IsPrintable(status.message()));
  FUZZ_REQUIRE(status.ok() || absl::IsInvalidArgument(status));
  if (status.ok()) FUZZ_REQUIRE(outcome.ended && outcome.wait_status == 0);
}

void ReadDeclaration(fuzz::Input* input) {
  const Declaration declaration(input);
  const auto library = plugin::Library::FromDescription(declaration.get(), "sha256");
  if (!library.ok()) {
    FUZZ_REQUIRE(absl::IsInvalidArgument(library.status()));
    FUZZ_REQUIRE(IsPrintable(library.status().message()));
    return;
  }
  FUZZ_REQUIRE(IsPrintable((*library)->name()) && !(*library)->name().empty());
  FUZZ_REQUIRE(!(*library)->kernels().empty());
  for (const plugin::Kernel& kernel : (*library)->kernels()) {
    FUZZ_REQUIRE(!kernel.nodes.empty() && kernel.nodes.size() <= 8);
    FUZZ_REQUIRE(kernel.description->forward != nullptr);
  }
  for (const plugin::DeviceAbility& device :
       {plugin::DeviceAbility{DeviceKind::kCpu, 0}, plugin::DeviceAbility{DeviceKind::kCuda, 90}}) {
    Registry registry;
    plugin::CheckAbility(**library, device).IgnoreError();
    const absl::Status first = plugin::Register(*library, device, &registry);
    // Nothing of the same name comes behind it.
    if (first.ok() && plugin::CheckAbility(**library, device).ok()) {
      FUZZ_REQUIRE(!plugin::Register(*library, device, &registry).ok());
    }
  }
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  plumbline::fuzz::Input input(data, size);
  if (input.Byte() % 4 == 0) {
    plumbline::JudgeAnswer(&input);
  } else {
    plumbline::ReadDeclaration(&input);
  }
  return 0;
}
