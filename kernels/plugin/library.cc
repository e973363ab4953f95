#include "kernels/plugin/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/vocabulary.h"

namespace plumbline::plugin {
namespace {

constexpr int kMaxKernels = 64;
constexpr int kMaxNodes = 8;
constexpr size_t kMaxTextBytes = 256;
constexpr int64_t kMaxAlignmentBytes = 64;

absl::Status NotAsDeclared(absl::string_view field, absl::string_view what,
                           absl::string_view accepted) {
  return FieldError(absl::StrCat("plugin.", field), what, accepted);
}

// A string of the plug-in's: printable, of 1 to `max_bytes` bytes.
absl::StatusOr<std::string> ReadText(const char* text, absl::string_view field, size_t max_bytes,
                                     absl::string_view accepted_form = "") {
  const std::string accepted = accepted_form.empty()
                                   ? absl::StrCat("1 to ", max_bytes, " printable ASCII characters")
                                   : std::string(accepted_form);
  if (text == nullptr) return NotAsDeclared(field, "is NULL", accepted);
  const size_t bytes = strnlen(text, max_bytes + 1);
  const bool printable = std::all_of(text, text + bytes, [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (bytes > max_bytes) {
    return NotAsDeclared(field, absl::StrCat("is longer than ", max_bytes, " characters"),
                         accepted);
  }
  if (bytes == 0 || !printable) {
    return NotAsDeclared(field, absl::StrCat("is ", Quoted(absl::string_view(text, bytes))),
                         accepted);
  }
  return std::string(text, bytes);
}

bool AreConsecutive(const std::vector<const PluginNode*>& nodes) {
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i] != nodes[i - 1] + 1) return false;
  }
  return true;
}

absl::Status CheckConstraints(const plumbline_constraints& constraints, const std::string& field) {
  for (const int64_t value :
       {constraints.rows_multiple_of, constraints.max_rows, constraints.width_multiple_of,
        constraints.max_width, constraints.head_width, constraints.alignment_bytes}) {
    if (value < 0) return NotAsDeclared(field, absl::StrCat("has ", value), "0 or more");
  }
  const int64_t alignment = constraints.alignment_bytes;
  if (alignment > kMaxAlignmentBytes || (alignment & (alignment - 1)) != 0) {
    return NotAsDeclared(absl::StrCat(field, ".alignment_bytes"), absl::StrCat("is ", alignment),
                         "a power of two, at most 64");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Load(const std::string& path,
                                                             const std::string& sha256) {
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    // "PATH: ...", which says nothing to who sent the file.
    absl::string_view why = dlerror();
    if (absl::StartsWith(why, path)) why.remove_prefix(std::min(why.size(), path.size() + 2));
    return absl::InvalidArgumentError(absl::StrCat("cannot be loaded: ", why));
  }
  const auto get =
      reinterpret_cast<const plumbline_plugin* (*)()>(dlsym(object, PLUMBLINE_PLUGIN_ENTRY));
  if (get == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no plug-in: it does not export ", PLUMBLINE_PLUGIN_ENTRY, "()"));
  }
  return FromDescription(get(), sha256);
}

absl::StatusOr<std::shared_ptr<const Library>> Library::FromDescription(
    const plumbline_plugin* description, const std::string& sha256) {
  if (description == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(PLUMBLINE_PLUGIN_ENTRY, "() returns NULL"));
  }
  std::shared_ptr<Library> library(new Library);
  library->sha256_ = sha256;
  PLUMBLINE_RETURN_IF_ERROR(library->Read(*description));
  return library;
}

absl::Status Library::Read(const plumbline_plugin& description) {
  if (description.abi_version != PLUMBLINE_PLUGIN_ABI_VERSION) {
    return NotAsDeclared("abi_version", absl::StrCat("is ", description.abi_version),
                         absl::StrCat(PLUMBLINE_PLUGIN_ABI_VERSION,
                                      ": build it against this version's plumbline_plugin.h"));
  }
  if (description.struct_bytes != sizeof(plumbline_plugin)) {
    return NotAsDeclared("struct_bytes", absl::StrCat("is ", description.struct_bytes),
                         absl::StrCat("sizeof(plumbline_plugin), ", sizeof(plumbline_plugin)));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(name_,
                             ReadText(description.name, "name", kMaxTextBytes, kPluginNameForm));
  if (!IsPluginName(name_)) {
    return NotAsDeclared("name",
                         absl::StrCat("is ", Quoted(name_), ", ", name_.size(), " characters"),
                         kPluginNameForm);
  }
  implementation_ = absl::StrCat("plugin/", name_);
  PLUMBLINE_ASSIGN_OR_RETURN(owner_, ReadText(description.owner, "owner", kMaxTextBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(identity_, ReadText(description.identity, "identity", kMaxTextBytes));
  if (description.num_kernels < 1 || description.num_kernels > kMaxKernels ||
      description.kernels == nullptr) {
    return NotAsDeclared("num_kernels", absl::StrCat("is ", description.num_kernels),
                         absl::StrCat("1 to ", kMaxKernels));
  }
  for (int i = 0; i < description.num_kernels; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(ReadKernel(description.kernels[i], i));
  }
  return absl::OkStatus();
}

absl::Status Library::ReadKernel(const plumbline_kernel& description, int index) {
  const std::string field = absl::StrCat("kernels[", index, "]");
  if (description.struct_bytes != sizeof(plumbline_kernel)) {
    return NotAsDeclared(absl::StrCat(field, ".struct_bytes"),
                         absl::StrCat("is ", description.struct_bytes),
                         absl::StrCat("sizeof(plumbline_kernel), ", sizeof(plumbline_kernel)));
  }
  if (description.num_nodes < 1 || description.num_nodes > kMaxNodes ||
      description.nodes == nullptr) {
    return NotAsDeclared(absl::StrCat(field, ".num_nodes"),
                         absl::StrCat("is ", description.num_nodes),
                         absl::StrCat("1 to ", kMaxNodes));
  }
  Kernel kernel;
  kernel.description = &description;
  for (int i = 0; i < description.num_nodes; ++i) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        const std::string node,
        ReadText(description.nodes[i], absl::StrCat(field, ".nodes"), kMaxTextBytes));
    const PluginNode* const found = FindPluginNode(node);
    if (found == nullptr) {
      return NotAsDeclared(absl::StrCat(field, ".nodes"),
                           absl::StrCat("there is no node ", Quoted(node)), PluginNodeNames());
    }
    kernel.nodes.push_back(found);
  }
  if (!AreConsecutive(kernel.nodes)) {
    return NotAsDeclared(absl::StrCat(field, ".nodes"), "are not consecutive",
                         "nodes of a block in execution order, none left out");
  }
  if (description.device != PLUMBLINE_CPU && description.device != PLUMBLINE_CUDA) {
    return NotAsDeclared(absl::StrCat(field, ".device"), absl::StrCat("is ", description.device),
                         "PLUMBLINE_CPU, PLUMBLINE_CUDA");
  }
  if (description.type != PLUMBLINE_BF16 && description.type != PLUMBLINE_F32) {
    return NotAsDeclared(absl::StrCat(field, ".type"), absl::StrCat("is ", description.type),
                         "PLUMBLINE_BF16, PLUMBLINE_F32");
  }
  if (description.status != PLUMBLINE_BOUND && description.status != PLUMBLINE_INTERIM) {
    return NotAsDeclared(absl::StrCat(field, ".status"), absl::StrCat("is ", description.status),
                         "PLUMBLINE_BOUND, PLUMBLINE_INTERIM");
  }
  if ((description.promises & ~(uint32_t{PLUMBLINE_REPEATABLE} | PLUMBLINE_ROW_INVARIANT)) != 0) {
    return NotAsDeclared(absl::StrCat(field, ".promises"),
                         absl::StrFormat("is 0x%x", description.promises),
                         "PLUMBLINE_REPEATABLE, PLUMBLINE_ROW_INVARIANT");
  }
  PLUMBLINE_RETURN_IF_ERROR(
      CheckConstraints(description.constraints, absl::StrCat(field, ".constraints")));
  if (description.forward == nullptr) {
    return NotAsDeclared(absl::StrCat(field, ".forward"), "is NULL", "a function");
  }
  if (kernel.IsFused() && description.backward != nullptr) {
    return NotAsDeclared(absl::StrCat(field, ".backward"), "is set in a kernel of several nodes",
                         "NULL, and a kernel of one node for each backward");
  }
  for (const Kernel& other : kernels_) {
    if (other.description->device == description.device && other.nodes == kernel.nodes) {
      return NotAsDeclared(absl::StrCat(field, ".nodes"),
                           absl::StrCat(kernel.nodes[0]->name, " has a kernel already"),
                           "one kernel for each node and device");
    }
  }
  kernels_.push_back(std::move(kernel));
  return absl::OkStatus();
}

}  // namespace plumbline::plugin
