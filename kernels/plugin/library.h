#ifndef PLUMBLINE_KERNELS_PLUGIN_LIBRARY_H_
#define PLUMBLINE_KERNELS_PLUGIN_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/plugin/nodes.h"
#include "kernels/plugin/plumbline_plugin.h"

namespace plumbline::plugin {

// One kernel of a plug-in, understood.
struct Kernel {
  const plumbline_kernel* description = nullptr;  // the plug-in's, or a copy of it
  std::vector<const PluginNode*> nodes;           // one or more, consecutive

  bool IsFused() const { return nodes.size() > 1; }
  bool Promises(uint32_t promise) const { return (description->promises & promise) != 0; }
};

// A plug-in's shared object, loaded into this process, where it stays until the process ends: code
// of it may run on threads of its own. Only read once it is made: any thread may call.
class Library {
 public:
  // Loading runs code of the object, which may do anything: do it in another process first.
  // INVALID_ARGUMENT says what of the object is not as plumbline_plugin.h wants it. `sha256` is the
  // file's.
  static absl::StatusOr<std::shared_ptr<const Library>> Load(const std::string& path,
                                                             const std::string& sha256);
  // The same of a description that is linked in; it must outlive the library.
  static absl::StatusOr<std::shared_ptr<const Library>> FromDescription(
      const plumbline_plugin* description, const std::string& sha256);

  const std::string& name() const { return name_; }
  // As compositions write it: "plugin/NAME".
  const std::string& implementation() const { return implementation_; }
  const std::string& owner() const { return owner_; }
  // As the plug-in declares.
  const std::string& identity() const { return identity_; }
  const std::string& sha256() const { return sha256_; }
  int abi_version() const { return PLUMBLINE_PLUGIN_ABI_VERSION; }
  absl::Span<const Kernel> kernels() const { return kernels_; }

 private:
  Library() = default;
  absl::Status Read(const plumbline_plugin& description);
  absl::Status ReadKernel(const plumbline_kernel& description, int index);

  std::string name_, implementation_, owner_, identity_, sha256_;
  std::vector<Kernel> kernels_;
};

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_LIBRARY_H_
