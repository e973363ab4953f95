#ifndef PLUMBLINE_WORKER_PLUGIN_PLUGINS_H_
#define PLUMBLINE_WORKER_PLUGIN_PLUGINS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/plugin/library.h"
#include "kernels/plugin/registration.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/plugin/probe.h"

namespace plumbline::worker {

struct PluginOptions {
  // Where objects are copied before they are loaded, by digest: what is loaded is what was hashed,
  // and a file may be built anew while it is in use. They stay while the process has them loaded.
  std::string copies_folder;
  plugin::DeviceAbility device;
  ProbeOptions probe;
};

// The plug-ins that a worker has, or that one task brings. A copy may be added to apart. One thread
// at a time.
class Plugins {
 public:
  explicit Plugins(PluginOptions options) : options_(std::move(options)) {}

  // Probes and loads the object at `path`. INVALID_ARGUMENT says what is wrong with it,
  // FAILED_PRECONDITION why it does not run on the device, ALREADY_EXISTS that another has its
  // name.
  absl::Status Add(const std::string& path);
  // Every *.so of a folder, by name; one that is refused is described and logged, and does not keep
  // the others away. INVALID_ARGUMENT if there is no such folder.
  absl::Status AddFolder(const std::string& folder);

  bool empty() const { return libraries_.empty(); }
  // For the worker's registration: the refused ones too, by their file's name.
  const std::vector<v1::Plugin>& descriptions() const { return descriptions_; }
  // Everything that is built in, and these.
  absl::StatusOr<Registry> MakeRegistry() const;
  // What each puts into a numerical identity, by name: its digest and what it declares.
  std::map<std::string, std::string> Identities() const;

 private:
  absl::StatusOr<std::string> CopyByDigest(const std::string& path, std::string* sha256) const;

  PluginOptions options_;
  std::vector<std::shared_ptr<const plugin::Library>> libraries_;
  std::vector<v1::Plugin> descriptions_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_PLUGIN_PLUGINS_H_
