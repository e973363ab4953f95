#ifndef PLUMBLINE_SERVER_HTTP_STATIC_FILES_H_
#define PLUMBLINE_SERVER_HTTP_STATIC_FILES_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/http_server.h"

namespace plumbline::server {

// What the dashboard's pages may do: load from this server alone, and run none but its scripts.
inline constexpr char kPagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The files of the dashboard, all read at the start, so that no path of a request ever reaches the
// disk. Immutable.
class StaticFiles {
 public:
  // By path below the root, with "/" between folders, e.g. "assets/index-4f2a.js".
  explicit StaticFiles(std::map<std::string, std::string> files);

  // All files in and below `folder`: links are not followed, hidden files left out.
  // INVALID_ARGUMENT naming `field` if it is no folder or has no index.html; RESOURCE_EXHAUSTED
  // above 64 MiB.
  static absl::StatusOr<std::unique_ptr<StaticFiles>> Load(const std::string& folder,
                                                           absl::string_view field);

  // A file; index.html for "/" and for paths that the dashboard itself resolves, which have no dot
  // in their last part; 404 for others. Files below "assets/" have their digest in their names and
  // may be kept for ever; of the rest a client must ask each time whether they have changed.
  HttpResponse Serve(const HttpRequest& request) const;

 private:
  struct File {
    std::string bytes;
    std::string gzip;  // Empty where it would not be smaller.
    std::string content_type;
    std::string entity_tag;
    bool immutable = false;
  };

  std::map<std::string, File> files_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_STATIC_FILES_H_
